package verify_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	agent      = "system:serviceaccount:kubescape:node-agent"
	controller = "system:serviceaccount:hostwarrant-system:hostwarrant-controller"
)

// guild is a court whose policy has classes, and the keys that sign for them.
type guild struct {
	*court
	vendor, operator, stranger testkit.FragmentSigner
}

// newGuild has the classes of the policy that kubescape's reference publishes, but for limits of values.
func newGuild(t *testing.T) *guild {
	t.Helper()
	g := &guild{newCourt(t), testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t)}
	g.s.Controller = controller
	g.classes("")
	return g
}

// classes puts the policy in force with more text at its end.
func (g *guild) classes(more string) {
	g.t.Helper()
	g.with(g.document() + more)
}

func (g *guild) document() string {
	return fmt.Sprintf(`fragmentClasses:
  base: {signers: [%[1]q], allowedSpecPaths: [architectures, capabilities, execs, opens, syscalls, seccompProfile, endpoints, imageID, imageTag, rulePolicies, identifiedCallStacks, labelSelector]}
  admission: {signers: [%[2]q], allowedSpecPaths: [ingress, egress]}
  overlay: {signers: [%[2]q], allowedSpecPaths: [execs, opens]}
  any: {signers: [%[1]q], allowedSpecPaths: ["*"]}
ruleClasses:
  base: {signers: [%[1]q], allowedRuleIDs: ["*"], mayDisable: true}
  overlay: {signers: [%[2]q], allowedRuleIDs: [R0001]}
bindingClasses:
  base: {signers: [%[1]q]}
learners: [%[3]q]
`, g.vendor.Fingerprint, g.operator.Fingerprint, agent)
}

// labels writes the labels of a fragment; empty values are left out.
func labels(bundle, class, version string) string {
	var lines strings.Builder
	for _, l := range [][2]string{{"bundle", bundle}, {"fragment-class", class}, {"version", version}} {
		if l[1] != "" {
			fmt.Fprintf(&lines, "    signature.kubescape.io/%s: %q\n", l[0], l[1])
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "  labels:\n" + lines.String()
}

// profileText is a ContainerProfile of the bundle redis in the namespace pay, to be signed.
func profileText(name, labels, spec string) string {
	return "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: ContainerProfile\nmetadata:\n  name: " + name +
		"\n  namespace: pay\n" + labels + "spec: {" + spec + "}\n"
}

func rulesText(name, labels string, rules ...string) string {
	return "apiVersion: kubescape.io/v1\nkind: Rules\nmetadata:\n  name: " + name + "\n  namespace: pay\n" + labels + "spec: {rules: [" + strings.Join(rules, ", ") + "]}\n"
}

func ruleText(id string, enabled bool) string {
	return fmt.Sprintf("{id: %s, enabled: %v}", id, enabled)
}

func (g *guild) parsed(raw []byte) *fragment.Object {
	g.t.Helper()
	o, err := fragment.Parse(raw)
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

// judge signs a text with embedded content and asks Fragment.
func (g *guild) judge(by testkit.FragmentSigner, text string) (*fragment.Fragment, decision.Decision) {
	g.t.Helper()
	return verify.Fragment(g.s, g.parsed(by.Sign(g.t, text, true)))
}

func toJSON(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func corpusObject(t *testing.T, file string) *fragment.Object {
	t.Helper()
	o, err := fragment.Parse(toJSON(t, string(testkit.Corpus(t, "fragments/"+file))))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// signatureOf is the signature that an object carries.
func signatureOf(t *testing.T, o *fragment.Object) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(o.Annotations[fragment.AnnotationSignature])
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (g *guild) want(d decision.Decision, want decision.Reason) {
	g.t.Helper()
	wantJudged(g.t, d, want)
}

func wantJudged(t *testing.T, d decision.Decision, want decision.Reason) {
	t.Helper()
	if d.Reason != want || d.Allowed() != (want == decision.Verified) || !d.Allowed() && d.Hint == "" || len(d.Message()) >= decision.MaxMessage {
		t.Errorf("allowed %v, %s; want %s, with a hint", d.Allowed(), d.Message(), want)
	}
}

// pathSet is a spec and the paths that it sets, said once more for the oracle.
type pathSet struct {
	spec  string
	paths []string
}

func pathSets() map[string]pathSet {
	return map[string]pathSet{
		"execs":            {"execs: [{path: /bin/a}]", []string{"execs"}},
		"ingress":          {"ingress: [{identifier: x, ipAddress: 10.0.0.1}]", []string{"ingress"}},
		"execs and egress": {"execs: [{path: /bin/a}], egress: [{identifier: x, ipAddress: 10.0.0.1}]", []string{"execs", "egress"}},
		"seccomp":          {"seccompProfile: {spec: {defaultAction: \"\", architectures: [SCMP_ARCH_X86_64]}}", []string{"seccompProfile"}},
	}
}

// The oracle knows the published policy as sets of words and nothing of the engine.
func profileOracle(class, signer string, paths []string) decision.Reason {
	may := map[string]string{
		"base/vendor":        " architectures capabilities execs opens syscalls seccompProfile endpoints imageID imageTag rulePolicies identifiedCallStacks labelSelector ",
		"admission/operator": " ingress egress ",
		"overlay/operator":   " execs opens ",
	}
	if class != "base" && class != "admission" && class != "overlay" {
		return decision.ClassUnknown
	}
	allowed, signs := may[class+"/"+signer]
	if !signs {
		return map[bool]decision.Reason{true: decision.SignerScope, false: decision.SignerUnknown}[signer == "vendor" || signer == "operator"]
	}
	for _, path := range paths {
		if !strings.Contains(allowed, " "+path+" ") {
			return decision.PathRefused
		}
	}
	return decision.Verified
}

// Attack B6: 5 classes by 4 keys with 4 sets of paths.
func TestEveryCellOfTheProfileMatrixAgreesWithTheOracle(t *testing.T) {
	g := newGuild(t)
	signers := map[string]testkit.FragmentSigner{"vendor": g.vendor, "operator": g.operator, "stranger": g.stranger, "another stranger": testkit.NewFragmentSigner(t)}
	cells, seen := 0, map[decision.Reason]int{}
	for _, class := range []string{"base", "admission", "overlay", "cluster", ""} {
		for signer, key := range signers {
			for name, set := range pathSets() {
				want := profileOracle(class, signer, set.paths)
				_, d := g.judge(key, profileText("redis-x", labels("redis", class, ""), set.spec))
				if d.Reason != want || d.Allowed() != (want == decision.Verified) || !d.Allowed() && d.Hint == "" {
					t.Errorf("%s of class %q by %s: %s; want %s", name, class, signer, d.Message(), want)
				}
				cells++
				seen[want]++
			}
		}
	}
	if cells != 80 || len(seen) != 5 || seen[decision.Verified] != 4 {
		t.Errorf("%d cells, %v", cells, seen)
	}
}

func rulesOracle(class, signer string, rules []string, bundle bool) decision.Reason {
	signs := map[string]string{"base": "vendor", "overlay": "operator"}[class]
	switch {
	case signs == "":
		return decision.ClassUnknown
	case signs != signer && (signer == "vendor" || signer == "operator"):
		return decision.SignerScope
	case signs != signer:
		return decision.SignerUnknown
	}
	for _, rule := range rules {
		if class == "overlay" && (!strings.Contains(rule, "R0001,") || strings.Contains(rule, "false")) {
			return decision.RuleRefused
		}
	}
	if class == "overlay" && !bundle {
		return decision.RuleRefused
	}
	return decision.Verified
}

// Attack B6: 4 classes by 4 keys with 4 sets of rules, of a bundle and of none.
func TestEveryCellOfTheRulesMatrixAgreesWithTheOracle(t *testing.T) {
	g := newGuild(t)
	signers := map[string]testkit.FragmentSigner{"vendor": g.vendor, "operator": g.operator, "stranger": g.stranger, "another stranger": testkit.NewFragmentSigner(t)}
	sets := map[string][]string{
		"an allowed id":            {ruleText("R0001", true)},
		"another id":               {ruleText("R0002", true)},
		"another id, switched off": {ruleText("R0001", true), ruleText("R0002", false)},
		"one switched off":         {ruleText("R0001", false)},
	}
	cells := 0
	for _, class := range []string{"base", "overlay", "cluster", ""} {
		for signer, key := range signers {
			for name, rules := range sets {
				for _, bundle := range []string{"redis", ""} {
					want := rulesOracle(class, signer, rules, bundle != "")
					_, d := g.judge(key, rulesText("r", labels(bundle, class, ""), rules...))
					if d.Reason != want || d.Allowed() != (want == decision.Verified) || !d.Allowed() && d.Hint == "" {
						t.Errorf("%s of class %q and bundle %q by %s: %s; want %s", name, class, bundle, signer, d.Message(), want)
					}
				}
				cells++
			}
		}
	}
	if cells != 64 {
		t.Errorf("%d cells", cells)
	}
}

// The published artefacts under the policy that is published beside them.
func TestPublishedFragmentsMeetTheirPolicy(t *testing.T) {
	g := newGuild(t)
	published := func(vendor, operator string) {
		g.with(strings.NewReplacer(g.vendor.Fingerprint, vendor, g.operator.Fingerprint, operator).Replace(g.document()))
	}
	const vendor, operator = "key:162a08d59135652ee095ad2e0d927104c9e4eefe94f4ae844e7387ba1a7352d2", "key:58fd31c363a8fac06d6eb596c2e8c63d5913b4dc4b971ee62579ec41fff78826"
	const bobVendor, bobOperator = "key:1b962159c04a8b6dd5825b971d8417a144a1358d9e2f8c14368d14e1ebc67fbd", "key:2c6bd5e1e52cd5721c986bde87e84c382984d8d3263ddde7fc89d2e9c90c3fb3"
	for file, tt := range map[string]struct {
		vendor, operator string
		want             decision.Reason
	}{
		"node-agent/fragments/bundle37-base-signed.yaml":      {vendor, operator, decision.Verified},
		"node-agent/fragments/bundle37-admission-signed.yaml": {vendor, operator, decision.Verified},
		"node-agent/fragments/bundle37-overlay-signed.yaml":   {vendor, operator, decision.Verified},
		"node-agent/rules/cluster-baseline-signed.yaml":       {vendor, operator, decision.Verified},
		"node-agent/rules/namespace-override-signed.yaml":     {vendor, operator, decision.Verified},
		"node-agent/rules/untrusted-signer-signed.yaml":       {vendor, operator, decision.SignerUnknown},
		"bob/baseline-rules-signed.yaml":                      {bobVendor, bobOperator, decision.SignerScope},
		"bob/client-SBOB-signed.yaml":                         {bobVendor, bobOperator, decision.ClassUnknown},
		"bob/redis-healed-signed.yaml":                        {bobVendor, bobOperator, decision.ClassUnknown},
		"bob/fragments-unsigned/frag-base-redis.yaml":         {bobVendor, bobOperator, decision.Unsigned},
		"malleable/reordered-array.yaml":                      {vendor, operator, decision.Verified}, // the first that is seen; see TestTheFirstFormOfAnOrderCounts
		"malleable/cross-kind-rules.yaml":                     {vendor, operator, decision.KindMismatch},
		"malleable/dup-execs-leftover.yaml":                   {vendor, operator, decision.NotCanonical},
		"malleable/null-as-string.yaml":                       {vendor, operator, decision.Tampered},
	} {
		t.Run(file, func(t *testing.T) {
			published(tt.vendor, tt.operator)
			_, d := verify.Fragment(g.s, corpusObject(t, file))
			wantJudged(t, d, tt.want)
		})
	}
}

func TestARevokedKeySignsNoFragment(t *testing.T) {
	g := newGuild(t)
	text := profileText("redis-base", labels("redis", "base", "1"), "execs: [{path: /bin/a}]")
	g.classes("revoked: {fragmentSigners: [\"" + g.operator.Fingerprint + "\"]}\n")
	_, d := g.judge(g.vendor, text)
	g.want(d, decision.Verified)
	g.classes("revoked: {fragmentSigners: [\"" + g.vendor.Fingerprint + "\"]}\n")
	_, d = g.judge(g.vendor, text)
	g.want(d, decision.SignerRevoked)
}

// What was read under another policy is judged by the one in force, though the object cannot be read again.
func TestWhatWasReadBeforeIsJudgedAnew(t *testing.T) {
	g := newGuild(t)
	g.classes("")
	f, d := g.judge(g.vendor, profileText("redis-base", labels("redis", "base", "1"), "execs: [{path: /bin/a}]"))
	g.want(d, decision.Verified)
	if err := verify.Permitted(g.s, f); err != nil {
		t.Errorf("the same policy: %v", err)
	}
	g.classes("revoked: {fragmentSigners: [\"" + g.vendor.Fingerprint + "\"]}\n")
	if err := verify.Permitted(g.s, f); err == nil || err.Reason != decision.SignerRevoked {
		t.Errorf("a policy that revokes the key: %v", err)
	}
	g.s.Policy = nil
	if err := verify.Permitted(g.s, f); err == nil || err.Reason != decision.PolicyUnavailable {
		t.Errorf("no policy: %v", err)
	}
}

// The values of a class hold for each path, and a wildcard in a fragment does not reach further.
func TestValuesOfAClass(t *testing.T) {
	g := newGuild(t)
	for path, tt := range map[string]struct {
		values    string
		good, bad []string
	}{
		"architectures": {`["amd64"]`, []string{"[amd64]"}, []string{"[arm64]", "[amd64, arm64]"}},
		"capabilities":  {`["CAP_NET_*"]`, []string{"[CAP_NET_RAW]"}, []string{"[CAP_SYS_ADMIN]", `["*"]`, `["CAP_⋯"]`}},
		"syscalls":      {`["read", "write"]`, []string{"[read, write]"}, []string{"[ptrace]", `["*"]`}},
		"execs": {
			`["/usr/bin/*"]`,
			[]string{`[{path: /usr/bin/id, args: ["*"]}]`, `[{path: "/usr/bin/⋯"}]`},
			[]string{`[{path: /bin/sh}]`, `[{path: "/usr/⋯/id"}]`, `[{path: "*"}]`, `[{path: /usr/bin/../sbin/x}]`, `[{args: [x]}]`, `[{path: /usr/bin/id}, {path: "⋯⋯"}]`},
		},
		"opens":        {`["/etc/redis/*"]`, []string{`[{path: /etc/redis/a, flags: [O_RDWR]}]`}, []string{`[{path: /etc/shadow}]`, `[{path: "/etc/⋯/a"}]`}},
		"endpoints":    {`[":6379/*"]`, []string{`[{endpoint: ":6379/a"}]`}, []string{`[{endpoint: ":80/a"}]`, `[{methods: [GET]}]`}},
		"imageID":      {`["registry.example/redis@*"]`, []string{"registry.example/redis@sha256:aa"}, []string{"evil.example/redis@sha256:aa"}},
		"imageTag":     {`["registry.example/redis:7"]`, []string{"registry.example/redis:7"}, []string{"registry.example/redis:8"}},
		"rulePolicies": {`["R0001"]`, []string{`{R0001: {containerAllowed: true}}`}, []string{`{R0002: {}}`, `{R0001: {}, R0002: {}}`}},
		"egress": {
			`["*.redis.svc.", "10.0.*", "10.2.0.0/16"]`,
			[]string{`[{identifier: a, dns: a.redis.svc.}]`, `[{identifier: a, dnsNames: [a.redis.svc., b.redis.svc.]}]`, `[{identifier: a, ipAddress: 10.0.9.9}]`, `[{identifier: a, ipAddress: 10.2.0.0/16}]`},
			[]string{
				`[{identifier: a, dns: evil.example.}]`, `[{identifier: a, dns: a.redis.svc., dnsNames: [evil.example.]}]`, `[{identifier: a, ipAddress: 10.1.0.1}]`,
				`[{identifier: a, ipAddress: 10.0.0.0/8}]`, `[{identifier: a, dns: a.redis.svc., ipAddress: 10.1.0.1}]`, `[{identifier: a}]`,
				`[{identifier: a, dns: a.redis.svc., podSelector: {}}]`, `[{identifier: a, ipAddress: 10.0.9.9, namespaceSelector: {matchLabels: {a: b}}}]`,
			},
		},
		"ingress": {
			`["podSelector"]`,
			[]string{`[{identifier: a, podSelector: {matchLabels: {app: x}}}]`},
			[]string{`[{identifier: a, namespaceSelector: {}}]`, `[{identifier: a, podSelector: {}, ipAddress: 10.0.0.1}]`},
		},
	} {
		t.Run(path, func(t *testing.T) {
			g.with(strings.Replace(g.document(), `allowedSpecPaths: ["*"]`, `allowedSpecPaths: ["*"], values: {`+path+": "+tt.values+`}`, 1))
			for value, want := range reasonsOf(tt.good, tt.bad) {
				_, d := g.judge(g.vendor, profileText("x", labels("redis", "any", ""), path+": "+value))
				if d.Reason != want {
					t.Errorf("%s: %s; want %s", value, d.Message(), want)
				}
			}
		})
	}
}

func reasonsOf(good, bad []string) map[string]decision.Reason {
	all := map[string]decision.Reason{}
	for _, value := range good {
		all[value] = decision.Verified
	}
	for _, value := range bad {
		all[value] = decision.ValueRefused
	}
	return all
}

func TestAFlatProfileIsJudgedByItsClass(t *testing.T) {
	g := newGuild(t)
	const spec = "execs: [{path: /bin/a}]"
	_, d := g.judge(g.vendor, profileText("redis", "", spec))
	g.want(d, decision.ClassUnknown)
	if !strings.Contains(d.What, "has no class") {
		t.Errorf("it is told %q", d.What)
	}
	f, d := g.judge(g.vendor, profileText("redis", labels("", "base", ""), spec))
	g.want(d, decision.Verified)
	if f.Bundle != "" || ledger.SlotOf("pay", f) != (ledger.Slot{Namespace: "pay", Class: "base", Name: "redis"}) {
		t.Errorf("%+v", f)
	}
	_, d = g.judge(g.operator, profileText("redis", labels("", "base", ""), spec))
	g.want(d, decision.SignerScope)
}

func TestAPartOfABundleHasAPlace(t *testing.T) {
	g := newGuild(t)
	const spec = "execs: [{path: /bin/a}]"
	for bundle, want := range map[string]decision.Reason{
		"redis": decision.Verified, "a.b-c": decision.Verified, "x": decision.CompositeForeign,
		"Redis": decision.Malformed, "a/b": decision.Malformed, strings.Repeat("a", 254): decision.Malformed,
	} {
		_, d := g.judge(g.vendor, profileText("x", labels(bundle, "base", ""), spec))
		if d.Reason != want {
			t.Errorf("bundle %.20q: %s; want %s", bundle, d.Message(), want)
		}
	}
}

func TestATombstoneBuriesUpToItsVersion(t *testing.T) {
	g := newGuild(t)
	g.classes("bundles: {redis: {tombstones: [{class: overlay, name: old, version: 4}]}}\n")
	const spec = "execs: [{path: /bin/a}]"
	for name, tt := range map[string]struct {
		name, bundle, class, version string
		by                           testkit.FragmentSigner
		want                         decision.Reason
	}{
		"that version":    {"old", "redis", "overlay", "4", g.operator, decision.VersionRollback},
		"an older one":    {"old", "redis", "overlay", "", g.operator, decision.VersionRollback},
		"a newer one":     {"old", "redis", "overlay", "5", g.operator, decision.Verified},
		"another name":    {"new", "redis", "overlay", "4", g.operator, decision.Verified},
		"another bundle":  {"old", "mysql", "overlay", "4", g.operator, decision.Verified},
		"another class":   {"old", "redis", "base", "4", g.vendor, decision.Verified},
		"of no bundle":    {"old", "", "overlay", "4", g.operator, decision.Verified},
		"without a class": {"old", "redis", "", "4", g.operator, decision.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := g.judge(tt.by, profileText(tt.name, labels(tt.bundle, tt.class, tt.version), spec))
			wantJudged(t, d, tt.want)
		})
	}
}

// Versions are counted in the ledger: attacks D6 and H9 at admission.
func TestVersionsOfASlotOnlyRise(t *testing.T) {
	g := newGuild(t)
	text := func(version, exec string) string {
		return profileText("redis-base", labels("redis", "base", version), "execs: [{path: "+exec+"}]")
	}
	three, d := g.judge(g.vendor, text("3", "/bin/a"))
	g.want(d, decision.Verified)
	slot := ledger.Slot{Namespace: "pay", Bundle: "redis", Class: "base", Name: "redis-base"}
	if ledger.SlotOf("pay", three) != slot {
		t.Fatalf("slot %s", ledger.SlotOf("pay", three))
	}
	known := marks{slots: map[ledger.Slot]ledger.SlotMark{slot: ledger.SlotMarkOf(three)}}
	for name, tt := range map[string]struct {
		ledger        verify.Ledger
		version, exec string
		want          decision.Reason
	}{
		"the same":                 {known, "3", "/bin/a", decision.Verified},
		"lower":                    {known, "2", "/bin/a", decision.VersionRollback},
		"absent is 0":              {known, "", "/bin/a", decision.VersionRollback},
		"equal, other content":     {known, "3", "/bin/b", decision.VersionEquivocated},
		"higher":                   {known, "4", "/bin/b", decision.Verified},
		"1000 higher":              {known, "1003", "/bin/b", decision.Verified},
		"1001 higher":              {known, "1004", "/bin/b", decision.SerialJump},
		"the first of a slot":      {marks{}, "1000000", "/bin/b", decision.Verified},
		"the first, too high":      {marks{}, "1000001", "/bin/b", decision.SerialJump},
		"no number (attack H10)":   {marks{}, "two", "/bin/b", decision.Malformed},
		"a leading zero":           {marks{}, "03", "/bin/b", decision.Malformed},
		"the largest, and one":     {marks{}, "9223372036854775808", "/bin/b", decision.Malformed},
		"without a ledger, at all": {nil, "1", "/bin/b", decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			g.s.Ledger = tt.ledger
			o := g.parsed(signedAnyhow(t, g.vendor, text(tt.version, tt.exec)))
			_, d := verify.Fragment(g.s, o)
			wantJudged(t, d, tt.want)
		})
	}
}

// signedAnyhow signs what Content refuses to give for its version label.
func signedAnyhow(t *testing.T, by testkit.FragmentSigner, text string) []byte {
	t.Helper()
	const marker = "98765"
	_, after, _ := strings.Cut(text, "io/version: \"")
	version, _, versioned := strings.Cut(after, "\"")
	if !versioned {
		return by.Sign(t, text, true)
	}
	o, err := fragment.Parse(toJSON(t, strings.Replace(text, `io/version: "`+version, `io/version: "`+marker, 1)))
	if err != nil {
		t.Fatal(err)
	}
	content, err := fragment.Content(o)
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.Replace(string(content), marker, version, 1))
	return testkit.Annotate(t, toJSON(t, text), by.Annotations(t, content, true))
}

// The signature leaves the order of lists out; whoever has the first form decides (attacks H1, M1).
func TestTheFirstFormOfAnOrderCounts(t *testing.T) {
	g := newGuild(t)
	const spec = "execs: [{path: /bin/a, args: [\"-r\", \"-f\"]}]"
	first := g.vendor.Sign(t, profileText("redis-base", labels("redis", "base", "1"), spec), true)
	o := g.parsed(first)
	f, d := verify.Fragment(g.s, o)
	g.want(d, decision.Verified)
	g.s.Ledger = marks{slots: map[ledger.Slot]ledger.SlotMark{ledger.SlotOf("pay", f): ledger.SlotMarkOf(f)}}
	_, d = verify.Fragment(g.s, o)
	g.want(d, decision.Verified)
	// The same signature beside the other order.
	other := g.parsed(toJSON(t, profileText("redis-base", labels("redis", "base", "1"), "execs: [{path: /bin/a, args: [\"-f\", \"-r\"]}]")))
	content, err := fragment.Content(other)
	if err != nil {
		t.Fatal(err)
	}
	other.Annotations = fragment.Annotations(content, g.vendor.Certificate, signatureOf(t, o), true, testkit.Now())
	_, d = verify.Fragment(g.s, other)
	g.want(d, decision.VersionEquivocated)
	g.s.Ledger = marks{}
	_, d = verify.Fragment(g.s, other)
	g.want(d, decision.Verified)
}

func TestASlotGoesBackByAResetAlone(t *testing.T) {
	g := newGuild(t)
	text := func(version string) string {
		return profileText("redis-base", labels("redis", "base", version), "execs: [{path: /bin/a}]")
	}
	two, _ := g.judge(g.vendor, text("2"))
	slot := ledger.SlotOf("pay", two)
	reset := func(slot, digest string) string {
		return fmt.Sprintf("resets: [{slot: %s, serial: 2, digest: \"sha256:%s\"}]\n", slot, digest)
	}
	known := marks{slots: map[ledger.Slot]ledger.SlotMark{slot: {Version: 3, Digest: "x", Bytes: "y"}}}
	for name, tt := range map[string]struct {
		more string
		used bool
		want decision.Reason
	}{
		"none":                   {"", false, decision.VersionRollback},
		"for it":                 {reset(slot.String(), two.Digest), false, decision.Verified},
		"for it, used":           {reset(slot.String(), two.Digest), true, decision.VersionRollback},
		"for other content":      {reset(slot.String(), strings.Repeat("0", 64)), false, decision.VersionRollback},
		"in another namespace":   {reset("shop/redis/base/redis-base", two.Digest), false, decision.VersionRollback},
		"of rules, the same way": {reset("/redis/rules/base/redis-base", two.Digest), false, decision.VersionRollback},
	} {
		t.Run(name, func(t *testing.T) {
			g.classes(tt.more)
			known.used = nil
			if tt.used {
				known.used = []string{g.s.Policy.Resets[0].ID()}
			}
			g.s.Ledger = known
			_, d := g.judge(g.vendor, text("2"))
			wantJudged(t, d, tt.want)
		})
	}
}

// Rules take effect everywhere: a copy in another namespace is held to the same mark. Profiles do not.
func TestKindsShareNoSlot(t *testing.T) {
	g := newGuild(t)
	rules, d := g.judge(g.vendor, rulesText("x", labels("", "base", "2"), ruleText("R0001", true)))
	g.want(d, decision.Verified)
	profile, d := g.judge(g.vendor, profileText("x", labels("", "base", "2"), "execs: [{path: /bin/a}]"))
	g.want(d, decision.Verified)
	binding, d := g.judge(g.vendor, "apiVersion: kubescape.io/v1\nkind: RuntimeRuleAlertBinding\nmetadata:\n  name: x\n"+labels("", "base", "2")+"spec: {rules: []}\n")
	g.want(d, decision.Verified)
	seccomp, d := g.judge(g.vendor, "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: SeccompProfile\nmetadata:\n  name: x\n  namespace: pay\n"+labels("", "base", "2")+"spec: {a: b}\n")
	g.want(d, decision.Verified)
	got := []ledger.Slot{ledger.SlotOf("pay", rules), ledger.SlotOf("pay", profile), ledger.SlotOf("", binding), ledger.SlotOf("pay", seccomp)}
	want := []ledger.Slot{
		{Class: "rules/base", Name: "x"}, {Namespace: "pay", Class: "base", Name: "x"}, {Class: "bindings/base", Name: "x"}, {Namespace: "pay", Class: "seccomp/base", Name: "x"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("slots %q; want %q", got, want)
	}
}

// The experimental kinds are held to their classes.
func TestExperimentalKindsHaveClasses(t *testing.T) {
	g := newGuild(t)
	binding := "apiVersion: kubescape.io/v1\nkind: RuntimeRuleAlertBinding\nmetadata:\n  name: x\n" + labels("", "base", "") + "spec: {rules: []}\n"
	for signer, want := range map[*testkit.FragmentSigner]decision.Reason{&g.vendor: decision.Verified, &g.operator: decision.SignerScope, &g.stranger: decision.SignerUnknown} {
		_, d := g.judge(*signer, binding)
		g.want(d, want)
	}
	_, d := g.judge(g.vendor, strings.Replace(binding, `"base"`, `"overlay"`, 1))
	g.want(d, decision.ClassUnknown)
	seccomp := func(class string) string {
		return "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: SeccompProfile\nmetadata:\n  name: x\n  namespace: pay\n" + labels("", class, "") + "spec: {a: b}\n"
	}
	_, d = g.judge(g.operator, seccomp("overlay"))
	g.want(d, decision.PathRefused)
	_, d = g.judge(g.vendor, seccomp("base"))
	g.want(d, decision.Verified)
}

func TestWithoutAPolicyNoFragmentIsJudged(t *testing.T) {
	g := newGuild(t)
	text := profileText("redis-base", labels("redis", "base", ""), "execs: [{path: /bin/a}]")
	_, d := g.judge(g.vendor, text)
	g.want(d, decision.Verified)
	p := g.s.Policy
	g.s.Policy = nil
	f, d := g.judge(g.vendor, text)
	g.want(d, decision.PolicyUnavailable)
	if f != nil {
		t.Error("a fragment without a policy")
	}
	g.s.Policy, g.s.Now = p, p.Expires
	_, d = g.judge(g.vendor, text)
	g.want(d, decision.PolicyExpired)
}
