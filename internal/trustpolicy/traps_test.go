package trustpolicy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// What is well-formed and refuses what it names is told, and its near miss is not.
func TestTrapsAreTold(t *testing.T) {
	one, two := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	good := strings.NewReplacer("ONE", one.Line, "TWO", two.Line).Replace(`version: 1
clusters: {any: {}}
issued: "2026-11-29T00:00:00Z"
expires: "2027-05-29T00:00:00Z"
mode: enforce
rootVersion: 1
joinProfiles:
  signers:
  - {name: one, key: "ONE", validBefore: "2027-03-01T00:00:00Z", profiles: ["tls-*"], targets: ["class bm-*"], phases: [install, join, leave]}
  - {name: two, key: "TWO", targets: [any]}
  thresholds: {install: 1, join: 2, leave: 1, uninstall: 1}
  requireWarrant: true
  maxValidity: 30d
  unguarded: [{profiles: ["legacy-*"], until: "2027-03-01T00:00:00Z"}]
  hosts:
    raw: [{host: "pool/old-1", until: "2027-03-01T00:00:00Z"}]
    users: [kpssh]
    ports: [22]
    profiles: {bm-amd64: ["tls-a", "tls-b*"]}
    namespaces: {pool: {classes: [bm-amd64], nodeNames: ["pool-*"]}}
waivers: [{kind: SSHJoinProfile, name: x, digest: "sha256:` + strings.Repeat("ab", 32) + `", expires: "2027-03-01T00:00:00Z", reason: "r"}]
`)
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	const lacks = "class bm-amd64 may run profile tls-b*, but of the 2 signers that its join needs the policy has 1"
	for name, c := range map[string]struct {
		from, to string
		now      time.Time
		want     []string // nil: nothing is told
	}{
		"nothing":                       {},
		"no namespaces":                 {"    namespaces: {pool: {classes: [bm-amd64], nodeNames: [\"pool-*\"]}}\n", "", now, []string{"joinProfiles.hosts.namespaces names none: every SSHHost and every HostRun is refused"}},
		"no users":                      {"users: [kpssh]", "users: []", now, []string{"joinProfiles.hosts.users names none: every SSHHost is refused"}},
		"no ports":                      {"ports: [22]", "ports: []", now, []string{"joinProfiles.hosts.ports names none: every SSHHost is refused"}},
		"no node names":                 {`, nodeNames: ["pool-*"]`, "", now, []string{"namespaces.pool.nodeNames names none: every join there is refused"}},
		"no classes":                    {"classes: [bm-amd64]", "classes: []", now, []string{"namespaces.pool.classes names none: every SSHHost there is refused", "profiles.bm-amd64: no namespace lists that class, so no host can have it"}},
		"a class without profiles":      {"classes: [bm-amd64]", "classes: [bm-amd64, default]", now, []string{"profiles has nothing for class default, which hosts of pool may have: every run there is refused"}},
		"a class that no host has":      {"profiles: {bm-amd64:", "profiles: {vm: [\"tls-a\"], bm-amd64:", now, []string{"profiles.vm: no namespace lists that class, so no host can have it"}},
		"a profile beyond a scope":      {`profiles: ["tls-*"]`, `profiles: ["tls-a"]`, now, []string{lacks}},
		"a pattern within another":      {`profiles: ["tls-*"]`, `profiles: ["tls-a", "tls-bootstrap"]`, now, nil},
		"a class beyond a scope":        {`"class bm-*"`, `"class bm-arm64"`, now, []string{"profile tls-a, but of the 2 signers that its join needs the policy has 1", lacks, `signer "one": its scope holds nothing that any class of hosts may run`}},
		"a scope of hosts":              {`"class bm-*"`, `"cluster prod-1"`, now, nil},
		"a revoked signer":              {"waivers:", "revoked: {signers: [\"" + two.Fingerprint + "\"]}\nwaivers:", now, []string{"tls-a, but of the 2 signers", lacks, `signer "two" is revoked: it vouches for nothing`}},
		"one for leave":                 {"phases: [install, join, leave]", "phases: [install, join]", now, nil},
		"a signer past its term":        {"validBefore: \"2027-03-01", "validBefore: \"2026-12-01", now, []string{"tls-a, but of the 2 signers", lacks, `signer "one" is past its term: it vouches for nothing`}},
		"a term that ends in 30 days":   {"validBefore: \"2027-03-01", "validBefore: \"2026-12-31", now, []string{`the term of signer "one" ends 2026-12-31T00:00:00Z`}},
		"a term that ends in 31":        {"validBefore: \"2027-03-01", "validBefore: \"2027-01-01", now, nil},
		"exceptions that end":           {"", "", time.Date(2027, 2, 10, 0, 0, 0, 0, time.UTC), []string{`the term of signer "one" ends`, "what raw host pool/old-1 is excused from ends 2027-03-01", "what unguarded profiles legacy-* are excused from ends", "the waiver of SSHJoinProfile/x ends"}},
		"an exception that ended":       {"raw: [{host: \"pool/old-1\", until: \"2027-03-01", "raw: [{host: \"pool/old-1\", until: \"2026-12-01", now, []string{"what raw host pool/old-1 is excused from ended 2026-12-01T00:00:00Z"}},
		"a policy that names no signer": {good[strings.Index(good, "  signers:"):strings.Index(good, "  requireWarrant:")], "", now, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.from) {
				t.Fatalf("the document has no %q", c.from)
			}
			if c.now.IsZero() {
				c.now = now
			}
			p, err := trustpolicy.ReadUnverified([]byte(strings.Replace(good, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			got := p.Traps(c.now)
			if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, strings.Contains) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// A host that nobody may sign a leave for cannot leave.
func TestNobodyForLeaveIsATrap(t *testing.T) {
	one := testkit.NewSigner(t, "ed25519")
	p, err := trustpolicy.ReadUnverified([]byte(`version: 1
clusters: {any: {}}
issued: "2026-11-29T00:00:00Z"
expires: "2027-05-29T00:00:00Z"
mode: enforce
rootVersion: 1
joinProfiles:
  signers: [{name: one, key: "` + one.Line + `", phases: [install, join]}]
  hosts: {users: [kpssh], ports: [22], profiles: {a: ["*"]}, namespaces: {pool: {classes: [a], nodeNames: ["*"]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Traps(p.Issued); len(got) != 1 || !strings.Contains(got[0], "class a may run profile *, but of the 1 signers that its leave needs the policy has 0") {
		t.Errorf("got %q", got)
	}
}
