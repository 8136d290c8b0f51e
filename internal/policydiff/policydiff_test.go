package policydiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	oneHex   = "abababababababababababababababababababababababababababababababab"
	otherHex = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
)

// fullPolicy has every field of docs/spec/trust-policy.md.
func fullPolicy(signer, authority testkit.Signer) string {
	return strings.NewReplacer("SIGNER", signer.Line, "AUTHORITY", authority.Line, "HEX", oneHex).Replace(`version: 3
clusters: {prod-1: {endpoints: ["https://10.0.0.5:6443"], caSHA256: ["HEX"], uid: 5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b}}
issued: "2026-11-29T00:00:00Z"
expires: "2027-05-29T00:00:00Z"
mode: warn
warnUntil: "2026-12-20T00:00:00Z"
rootVersion: 2
joinProfiles:
  signers:
  - {name: platform-ci, key: "SIGNER", certAuthority: false, validBefore: "2027-03-01T00:00:00Z", profiles: ["tls-*"], targets: ["class bm-*", "cluster prod-1"], phases: [join, leave]}
  - {name: people, key: "AUTHORITY", certAuthority: true}
  thresholds: {join: 1}
  requireWarrant: true
  maxValidity: 30d
  unguarded: [{profiles: ["legacy-*"], until: "2027-01-01T00:00:00Z"}]
  hosts:
    raw: [{host: "pool/old-1", until: "2027-01-02T00:00:00Z"}]
    users: [kpssh]
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {default: ["db-*"]}
    namespaces: {pool: {classes: [bm-amd64], nodeNames: ["pool-*"], hostCA: "AUTHORITY"}}
fragmentClasses: {base: {signers: ["key:HEX"], allowedSpecPaths: [execs, opens], values: {execs: ["/usr/bin/*"]}}}
ruleClasses: {rules: {signers: ["key:HEX"], allowedRuleIDs: [R0001], mayDisable: false}}
bindingClasses: {binds: {signers: ["key:HEX"]}}
learners: ["system:serviceaccount:kubescape:node-agent"]
bundles: {redis: {required: [{class: base, name: redis-base}], tombstones: [{class: base, name: old, version: 4}], priority: [base]}}
revoked: {signers: ["SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"], fragmentSigners: ["key:HEX"]}
floors: {tls-bootstrap: 40}
resets: [{profile: tls-bootstrap, serial: 41, digest: "sha256:HEX"}, {slot: pool/redis/base/redis-base, serial: 3, digest: "sha256:HEX"}]
waivers: [{kind: SSHJoinProfile, name: x, digest: "sha256:HEX", expires: "2026-12-10T00:00:00Z", reason: "until the vendor signs"}]
`)
}

// fieldChange changes one field. Lines are what diff must say of it, and of the way back.
type fieldChange struct {
	field    string // as leaves names it
	old, new string
	forward  string
	back     string
}

func fieldChanges(stranger testkit.Signer) []fieldChange {
	const w, r, c = "WIDENS ", "REDUCES ", "changes "
	const ci, ca = "/platform-ci/", "/people/"
	hex := `"key:` + oneHex + `"`
	more := `"key:` + oneHex + `", "key:` + otherHex + `"`
	key := "key:" + otherHex
	later := "2037-05-29T00:00:00Z"
	return []fieldChange{
		{"version", "version: 3", "version: 4", c + "version: 3, now 4", w + "version: 4, now 3"},
		{"rootVersion", "rootVersion: 2", "rootVersion: 3", c + "rootVersion: 2, now 3", w + "rootVersion: 3, now 2"},
		{"issued", "2026-11-29", "2026-11-30", c + "issued", c + "issued"},
		{"expires", "2027-05-29T00:00:00Z", later, w + "expires: 2027-05-29T00:00:00Z, now " + later, r + "expires"},
		{"mode", "mode: warn\nwarnUntil: \"2026-12-20T00:00:00Z\"", "mode: enforce", r + "mode", w + "mode"},
		{"warnUntil", "2026-12-20", "2026-12-21", w + "warnUntil", r + "warnUntil"},
		{"clusters.*", "clusters: {", "clusters: {prod-2: {endpoints: [\"https://evil\"]}, ", w + "clusters: adds prod-2", r + "clusters: removes prod-2"},
		{"clusters.*.endpoints", `["https://10.0.0.5:6443"]`, `["https://10.0.0.5:6443", "https://evil"]`, w + "clusters.prod-1.endpoints: adds https://evil", r + "clusters.prod-1.endpoints: removes"},
		{"clusters.*.caSHA256", `caSHA256: ["` + oneHex + `"`, `caSHA256: ["` + oneHex + `", "` + otherHex + `"`, w + "clusters.prod-1.caSHA256: adds " + otherHex, r + "clusters.prod-1.caSHA256"},
		{"clusters.*.uid", ", uid: 5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b", "", w + "clusters.prod-1.uid: 5f3c", r + "clusters.prod-1.uid: none, now 5f3c"},
		{"clusters.*.uid", "uid: 5f3c2a10", "uid: 5f3c2a11", w + "clusters.prod-1.uid", w + "clusters.prod-1.uid"},
		{"joinProfiles.signers[].name", "name: platform-ci", "name: ci", c + "signer \"ci\"", c + "signer \"platform-ci\""},
		{"joinProfiles.signers[].key", "name: people, key: \"AUTHORITY\"", "name: people, key: \"" + stranger.Line + "\"", w + "joinProfiles.signers: adds certificate authority \"people\" " + stranger.Fingerprint, r + "joinProfiles.signers: removes"},
		{"joinProfiles.signers[].certAuthority", "certAuthority: false", "certAuthority: true", w + "joinProfiles.signers: adds certificate authority", w + "joinProfiles.signers: adds signer"},
		{"joinProfiles.signers[].validBefore", `validBefore: "2027-03-01T00:00:00Z", `, "", w + "signer" + ci + "its term ends", r + "signer" + ci + "its term ends"},
		{"joinProfiles.signers[].profiles", `["tls-*"]`, `["*"]`, w + "signer" + ci + "profiles: adds *", w + "signer" + ci + "profiles: adds tls-*"},
		{"joinProfiles.signers[].targets", `["class bm-*", "cluster prod-1"]`, `["class bm-*"]`, w + "signer" + ci + "targets: only cluster prod-1, now everything", r + "signer" + ci + "targets: everything, now only cluster prod-1"},
		{"joinProfiles.signers[].targets", `["class bm-*", "cluster prod-1"]`, `[any]`, w + "signer" + ci + "targets: only class bm-*, cluster prod-1, now any", r + "signer" + ci + "targets: any, now only"},
		{"joinProfiles.signers[].targets", `certAuthority: true}`, `certAuthority: true, targets: [any]}`, r + "certificate authority" + ca + "targets: everything, now only any", w + "certificate authority" + ca + "targets: only any, now everything"},
		{"joinProfiles.signers[].phases", "[join, leave]", "[join, leave, install]", w + "signer" + ci + "phases: adds install", r + "signer" + ci + "phases: removes install"},
		{"joinProfiles.thresholds.*", "thresholds: {join: 1}", "thresholds: {join: 2}", r + "thresholds.join: 1, now 2", w + "thresholds.join: 2, now 1"},
		{"joinProfiles.requireWarrant", "requireWarrant: true", "requireWarrant: false", w + "requireWarrant", r + "requireWarrant"},
		{"joinProfiles.maxValidity", "30d", "90d", w + "maxValidity", r + "maxValidity"},
		{"joinProfiles.unguarded[].profiles", `["legacy-*"]`, `["legacy-*", "old-*"]`, w + "joinProfiles.unguarded: adds old-* until 2027", r + "joinProfiles.unguarded: removes old-*"},
		{"joinProfiles.unguarded[].until", "2027-01-01", "2037-01-01", w + "joinProfiles.unguarded: legacy-*, until: 2027", r + "joinProfiles.unguarded: legacy-*, until: 2037"},
		{"joinProfiles.hosts.raw[].host", "pool/old-1", "pool/old-2", w + "joinProfiles.hosts.raw: adds pool/old-2", w + "joinProfiles.hosts.raw: adds pool/old-1"},
		{"joinProfiles.hosts.raw[].until", "2027-01-02", "2037-01-02", w + "joinProfiles.hosts.raw: pool/old-1, until", r + "joinProfiles.hosts.raw: pool/old-1, until"},
		{"joinProfiles.hosts.users", "[kpssh]", "[kpssh, root]", w + "joinProfiles.hosts.users: adds root", r + "joinProfiles.hosts.users: removes root"},
		{"joinProfiles.hosts.ports", "[22]", "[22, 23]", w + "joinProfiles.hosts.ports: adds 23", r + "joinProfiles.hosts.ports: removes 23"},
		{"joinProfiles.hosts.shimCommands", "[/opt/kpssh/kpssh-shim]", "[/opt/kpssh/kpssh-shim, /bin/sh]", w + "joinProfiles.hosts.shimCommands: adds /bin/sh", r + "joinProfiles.hosts.shimCommands: removes"},
		{"joinProfiles.hosts.profiles.*", `{default: ["db-*"]}`, `{default: ["*"]}`, w + "joinProfiles.hosts.profiles.default: adds *", w + "joinProfiles.hosts.profiles.default: adds db-*"},
		{"joinProfiles.hosts.profiles.*", `{default: ["db-*"]}`, `{}`, r + "joinProfiles.hosts.profiles: removes default", w + "joinProfiles.hosts.profiles: adds default"},
		{"joinProfiles.hosts.namespaces.*", `{pool: {`, `{kube-system: {}, pool: {`, w + "joinProfiles.hosts.namespaces: adds kube-system", r + "joinProfiles.hosts.namespaces: removes kube-system"},
		{"joinProfiles.hosts.namespaces.*.classes", "[bm-amd64]", "[bm-amd64, gpu]", w + "joinProfiles.hosts.namespaces.pool.classes: adds gpu", r + "joinProfiles.hosts.namespaces.pool.classes: removes gpu"},
		{"joinProfiles.hosts.namespaces.*.classes", "classes: [bm-amd64], ", "", r + "joinProfiles.hosts.namespaces.pool.classes: removes bm-amd64", w + "joinProfiles.hosts.namespaces.pool.classes: adds"},
		{"joinProfiles.hosts.namespaces.*.nodeNames", `, nodeNames: ["pool-*"]`, ``, r + "joinProfiles.hosts.namespaces.pool.nodeNames: removes pool-*", w + "joinProfiles.hosts.namespaces.pool.nodeNames: adds pool-*"},
		{"joinProfiles.hosts.namespaces.*.hostCA", `hostCA: "AUTHORITY`, `hostCA: "` + stranger.Line, w + "joinProfiles.hosts.namespaces.pool.hostCA", w + "joinProfiles.hosts.namespaces.pool.hostCA"},
		{"fragmentClasses.*", "fragmentClasses: {", "fragmentClasses: {top: {signers: [" + hex + "]}, ", w + "fragmentClasses: adds top", r + "fragmentClasses: removes top"},
		{"fragmentClasses.*.signers", "base: {signers: [" + hex, "base: {signers: [" + more, w + "fragmentClasses.base.signers: adds " + key, r + "fragmentClasses.base.signers: removes"},
		{"fragmentClasses.*.allowedSpecPaths", "[execs, opens]", `[execs, opens, "*"]`, w + "fragmentClasses.base.allowedSpecPaths: adds *", r + "fragmentClasses.base.allowedSpecPaths: removes *"},
		{"fragmentClasses.*.values.*", `["/usr/bin/*"]`, `["/usr/bin/*", "/*"]`, w + "fragmentClasses.base.values.execs: adds /*", r + "fragmentClasses.base.values.execs: removes /*"},
		{"fragmentClasses.*.values.*", `, values: {execs: ["/usr/bin/*"]}`, ``, w + "fragmentClasses.base.values.execs: only /usr/bin/*, now everything", r + "fragmentClasses.base.values.execs"},
		{"ruleClasses.*.signers", "rules: {signers: [" + hex, "rules: {signers: [" + more, w + "ruleClasses.rules.signers: adds " + key, r + "ruleClasses.rules.signers: removes"},
		{"ruleClasses.*.allowedRuleIDs", "[R0001]", `["*"]`, w + "ruleClasses.rules.allowedRuleIDs: adds *", w + "ruleClasses.rules.allowedRuleIDs: adds R0001"},
		{"ruleClasses.*.mayDisable", "mayDisable: false", "mayDisable: true", w + "ruleClasses.rules: may disable", r + "ruleClasses.rules: may no longer disable"},
		{"bindingClasses.*.signers", "binds: {signers: [" + hex, "binds: {signers: [" + more, w + "bindingClasses.binds.signers: adds " + key, r + "bindingClasses.binds.signers: removes"},
		{"learners", ":node-agent\"", ":node-agent\", admin", w + "learners: adds admin", r + "learners: removes admin"},
		{"bundles.*", "bundles: {", "bundles: {nginx: {}, ", w + "bundles: adds nginx", w + "bundles: removes nginx"},
		{"bundles.*.required[].class", "{class: base, name: redis-base}", "", w + "bundles.redis.required: removes base/redis-base", r + "bundles.redis.required: adds base/redis-base"},
		{"bundles.*.required[].name", "name: redis-base}", "name: redis}", w + "bundles.redis.required: removes base/redis-base", w + "bundles.redis.required: removes base/redis"},
		{"bundles.*.tombstones[].class", "{class: base, name: old, version: 4}", "", w + "bundles.redis.tombstones: removes base/old 4", r + "bundles.redis.tombstones: adds base/old 4"},
		{"bundles.*.tombstones[].name", "name: old, version", "name: older, version", w + "bundles.redis.tombstones: removes base/old 4", w + "bundles.redis.tombstones: removes base/older 4"},
		{"bundles.*.tombstones[].version", "version: 4}", "version: 3}", w + "bundles.redis.tombstones.base/old: 4, now 3", r + "bundles.redis.tombstones.base/old: 3, now 4"},
		{"bundles.*.priority", "priority: [base]", "priority: []", w + "bundles.redis.priority: base, now none", w + "bundles.redis.priority: none, now base"},
		{"revoked.signers", `signers: ["SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0"]`, `signers: []`, w + "revoked.signers: removes SHA256:99C", r + "revoked.signers: adds SHA256:99C"},
		{"revoked.fragmentSigners", "fragmentSigners: [" + hex, "fragmentSigners: [" + more, r + "revoked.fragmentSigners: adds " + key, w + "revoked.fragmentSigners: removes"},
		{"floors.*", "tls-bootstrap: 40", "tls-bootstrap: 39", w + "floors.tls-bootstrap: 40, now 39", r + "floors.tls-bootstrap: 39, now 40"},
		{"resets[].profile", "{profile: tls-bootstrap, serial", "{profile: db, serial", w + "resets: adds profile db to 41", w + "resets: adds profile tls-bootstrap to 41"},
		{"resets[].slot", "slot: pool/redis/base/redis-base", "slot: pool/redis/base/x", w + "resets: adds slot pool/redis/base/x", w + "resets: adds slot pool/redis/base/redis-base"},
		{"resets[].serial", "serial: 41", "serial: 1", w + "resets: adds profile tls-bootstrap to 1,", w + "resets: adds profile tls-bootstrap to 41,"},
		{"resets[].digest", `serial: 41, digest: "sha256:` + oneHex, `serial: 41, digest: "sha256:` + otherHex, w + "resets: adds profile tls-bootstrap to 41, sha256:" + otherHex, w + "resets: adds"},
		{"waivers[].kind", "kind: SSHJoinProfile", "kind: SSHHost", w + "waivers: adds SSHHost x", w + "waivers: adds SSHJoinProfile x"},
		{"waivers[].name", "name: x, digest", "name: z, digest", w + "waivers: adds SSHJoinProfile z", w + "waivers: adds SSHJoinProfile x"},
		{"waivers[].digest", `name: x, digest: "sha256:` + oneHex, `name: x, digest: "sha256:` + otherHex, w + "waivers: adds SSHJoinProfile x, sha256:" + otherHex, w + "waivers: adds"},
		{"waivers[].expires", "2026-12-10", "2036-12-10", w + "waivers: SSHJoinProfile x", r + "waivers: SSHJoinProfile x"},
		{"waivers[].reason", "until the vendor signs", "because", w + "waivers: adds SSHJoinProfile x", w + "waivers: adds SSHJoinProfile x"},
	}
}

// said tells whether one of the lines starts as wanted; a "/NAME/" in it stands for a signer's name and fingerprint.
func said(lines []string, want string) bool {
	start, end := want, ""
	if before, rest, has := strings.Cut(want, "/"); has && strings.HasSuffix(before, "signer") || has && strings.HasSuffix(before, "authority") {
		name, after, _ := strings.Cut(rest, "/")
		start, end = fmt.Sprintf("%s %q SHA256:", before, name), ": "+after
	}
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, start) && strings.Contains(line, end) })
}

func diffLines(t *testing.T, was, is string) []string {
	t.Helper()
	var policies []*trustpolicy.Policy
	for _, document := range []string{was, is} {
		p, err := trustpolicy.ReadUnverified([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	var lines []string
	for _, change := range Compare(policies[0], policies[1]) {
		lines = append(lines, string(change.Effect)+" "+change.What)
	}
	return lines
}

func TestDiffShowsEachFieldAndItsDirection(t *testing.T) {
	signer, authority, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	good := fullPolicy(signer, authority)
	changed := map[string]bool{}
	for _, tt := range fieldChanges(stranger) {
		changed[tt.field] = true
		t.Run(tt.field, func(t *testing.T) {
			old := strings.ReplaceAll(tt.old, "AUTHORITY", authority.Line)
			if !strings.Contains(good, old) {
				t.Fatalf("no %q in the document", old)
			}
			next := strings.Replace(good, old, tt.new, 1)
			if lines := diffLines(t, good, next); !said(lines, tt.forward) {
				t.Errorf("want %q, got:\n%s", tt.forward, strings.Join(lines, "\n"))
			}
			if lines := diffLines(t, next, good); !said(lines, tt.back) {
				t.Errorf("on the way back want %q, got:\n%s", tt.back, strings.Join(lines, "\n"))
			}
		})
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(good), &root); err != nil {
		t.Fatal(err)
	}
	for _, field := range leaves("", root.Content[0]) {
		if !changed[field] {
			t.Errorf("no test changes %s", field)
		}
	}
	if diff := cmp.Diff([]string{"changes only the text: comments, order or spelling"}, diffLines(t, good, good+"# more\n")); diff != "" {
		t.Error(diff)
	}
}

// leaves names each field of a document; names that its author chose are "*".
func leaves(at string, n *yaml.Node) []string {
	var all []string
	switch n.Kind {
	case yaml.MappingNode:
		chosen := []string{"clusters", "floors", "fragmentClasses", "ruleClasses", "bindingClasses", "bundles", "fragmentClasses.*.values", "joinProfiles.thresholds", "joinProfiles.hosts.profiles", "joinProfiles.hosts.namespaces"}
		for i := 0; i < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if slices.Contains(chosen, at) {
				name = "*"
			}
			all = append(all, leaves(strings.TrimPrefix(at+"."+name, "."), n.Content[i+1])...)
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind == yaml.MappingNode {
				all = append(all, leaves(at+"[]", item)...)
			} else {
				all = append(all, at)
			}
		}
	default:
		all = append(all, at)
	}
	return all
}
