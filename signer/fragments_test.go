package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// published judges a file of the public test data by a published policy, under the published root.
func (w *world) published(policy, file string, more ...string) result {
	w.t.Helper()
	dir := testkit.CorpusDir(w.t, "fragments")
	args := append([]string{"verify", dir + "/" + file, "--policy", dir + "/" + policy, "--root", dir + "/node-agent/keys/demo-root.pub"}, more...)
	return w.hostwarrant(args...)
}

// Every published artefact has its listed outcome under the policy that was published beside it.
func TestVerifyJudgesPublishedFragmentsByThePublishedPolicy(t *testing.T) {
	w := newWorld(t)
	for file, want := range map[string]string{
		"node-agent/fragments/bundle37-base-signed.yaml":          "Verified",
		"node-agent/fragments/bundle37-admission-signed.yaml":     "Verified",
		"node-agent/fragments/bundle37-overlay-signed.yaml":       "Verified",
		"node-agent/rules/cluster-baseline-signed.yaml":           "Verified",
		"node-agent/rules/namespace-override-signed.yaml":         "Verified",
		"node-agent/rules/untrusted-signer-signed.yaml":           "SignerUnknown",
		"bob/baseline-rules-signed.yaml":                          "SignerUnknown",
		"bob/client-SBOB-signed.yaml":                             "ClassUnknown",
		"bob/redis-healed-signed.yaml":                            "ClassUnknown",
		"bob/fragments-unsigned/frag-base-redis.yaml":             "Unsigned",
		"bob/fragments-unsigned/frag-overlay-ops.yaml":            "Unsigned",
		"bob/fragments-unsigned/frag-admission-redis-client.yaml": "Unsigned",
		"malleable/cross-kind-rules.yaml":                         "KindMismatch",
		"malleable/dup-execs-leftover.yaml":                       "NotCanonical",
		"malleable/dup-metadata-version.yaml":                     "NotCanonical",
		"malleable/dup-spec.yaml":                                 "NotCanonical",
		"malleable/ignored-extra-key.yaml":                        "NotCanonical",
		"malleable/null-as-string.yaml":                           "Tampered",
		"malleable/object-as-array.yaml":                          "Tampered",
	} {
		t.Run(file, func(t *testing.T) {
			r := w.published("node-agent/trust-policy.signed.json", file)
			code := exitRefused
			if want == "Verified" {
				code = exitDone
			}
			if r.code != code || !strings.Contains(r.out, ": "+want+": ") {
				t.Errorf("want exit %d with %s, got exit %d, stdout %q, stderr %q", code, want, r.code, r.out, r.err)
			}
		})
	}
}

func TestVerifyTakesPoliciesOfTheReference(t *testing.T) {
	w := newWorld(t)
	const rules = "node-agent/rules/cluster-baseline-signed.yaml"
	r := w.published("node-agent/trust-policy.profiles-only.signed.json", rules)
	if r.code != exitDone || !strings.Contains(r.out, ": excused: Rules/ct-base-rules: Unguarded: ") {
		t.Errorf("without ruleClasses: exit %d, %s%s", r.code, r.out, r.err)
	}
	wantRefused(t, w.published("bob/trust-policy.signed.json", rules), "ClassUnknown")
	wantFailed(t, w.published("node-agent/trust-policy.badsigner.signed.json", rules), exitUndecided, "SignerUnknown")
	if r := w.published("node-agent/trust-policy.signed.json", rules); !strings.Contains(r.err, "published demo root") || !strings.Contains(r.err, "mode alert") {
		t.Errorf("no warning of the demo root, or of the mode: %s", r.err)
	}

	edited := strings.Replace(string(testkit.Corpus(t, "fragments/node-agent/trust-policy.signed.json")), `"execs",`, `"capabilities", "execs",`, 1)
	root := testkit.CorpusDir(t, "fragments") + "/node-agent/keys/demo-root.pub"
	object := testkit.CorpusDir(t, "fragments") + "/" + rules
	wantFailed(t, w.hostwarrant("verify", object, "--policy", w.write("edited.json", edited), "--root", root), exitUndecided, "Tampered")
	two := w.write("two.pub", w.read(root)+w.bob.Line+"\n")
	wantFailed(t, w.hostwarrant("verify", object, "--policy", testkit.CorpusDir(t, "fragments")+"/node-agent/trust-policy.signed.json", "--root", two), exitUndecided, "--root")

	// It vouches for no script.
	profile := w.write("profile.json", w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	wantRefused(t, w.hostwarrant("verify", profile, "--policy", testkit.CorpusDir(t, "fragments")+"/node-agent/trust-policy.signed.json", "--root", root), "SignerUnknown")
}

// Nobody has a policy in mode enforce under the demo root at hand: who could sign one has its private half.
func TestAPolicyUnderTheDemoRootMayNotEnforce(t *testing.T) {
	demo, err := trustpolicy.ParseRoots(testkit.Corpus(t, "fragments/node-agent/keys/demo-root.pub"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := trustpolicy.ParseRoots([]byte(testkit.NewSigner(t, "ecdsa256").Line))
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, mayEnforce(policyfile.Enforce, verify.Anchor{Roots: demo}), decision.DemoRoot)
	for name, err := range map[string]error{
		"alert under the demo root": mayEnforce(policyfile.Alert, verify.Anchor{Roots: demo}),
		"enforce under another":     mayEnforce(policyfile.Enforce, verify.Anchor{Roots: own}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The published fragments have the root that was worked out from them, whatever order they come in.
func TestAssembleGivesThePublishedFragmentsTheirRoot(t *testing.T) {
	w := newWorld(t)
	dir := testkit.CorpusDir(t, "fragments/node-agent")
	policy := []string{"--policy", dir + "/trust-policy.signed.json", "--root", dir + "/keys/demo-root.pub"}
	part := func(name string) string { return dir + "/fragments/bundle37-" + name + "-signed.yaml" }
	for _, paths := range [][]string{
		{dir + "/fragments"},
		{part("base"), part("admission"), part("overlay")},
		{part("overlay"), part("base"), part("admission")},
	} {
		r := w.hostwarrant(append(append([]string{"bundle", "assemble"}, paths...), policy...)...)
		if r.code != exitDone || !strings.Contains(r.out, `merkle-root: "acc1c4b5dede580900766f30b5ad1b3db4f8f3530da0f9799dc600f201ced57b"`) {
			t.Errorf("%v: exit %d, %s%s", paths, r.code, r.out, r.err)
		}
	}
	r := w.hostwarrant(append([]string{"bundle", "explain", dir, "-o", "json"}, policy...)...)
	for _, says := range []string{`"root": "acc1c4b5`, `"id": "R0001"`, `"replaces": true`, `"reason": "SignerUnknown"`, `"ofNoBundle"`} {
		if says != `"ofNoBundle"` && !strings.Contains(r.out, says) {
			t.Errorf("explain does not say %s: exit %d, %s", says, r.code, r.err)
		}
	}
	if r.code != exitRefused {
		t.Errorf("explain with rules of an unknown signer ends with %d", r.code)
	}
	r = w.hostwarrant(append([]string{"bundle", "explain", dir + "/rules/untrusted-signer-signed.yaml"}, policy...)...)
	if r.code != exitRefused || !strings.Contains(r.out, "rules: MemberMissing: no rules are admitted: detection is off") {
		t.Errorf("no rule is admitted: exit %d, %s", r.code, r.out)
	}
}

const plainFragment = `apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1
kind: ContainerProfile
metadata:
  name: part
spec:
  execs:
  - path: /usr/bin/id
`

// fragmentKeyFile writes a P-256 key.
func (w *world) fragmentKeyFile() string {
	w.t.Helper()
	return w.write("vendor", string(testkit.NewSigner(w.t, "ecdsa256").PEM))
}

func TestSignRefusesFragmentsThatNobodyShouldSign(t *testing.T) {
	w := newWorld(t)
	key := w.fragmentKeyFile()
	change := func(old, new string) string { return strings.Replace(plainFragment, old, new, 1) }
	for name, tt := range map[string]struct {
		text, says string
		code       int
	}{
		"a key twice":            {change("spec:\n", "spec:\n  execs: []\n"), "Malformed: key \"execs\" stands twice", exitRefused},
		"an alias":               {change("/usr/bin/id", "&a /usr/bin/id\n  - path: *a"), "Malformed", exitRefused},
		"an unknown field":       {change("  execs:", "  programs: [x]\n  execs:"), "NotCanonical: unknown field", exitRefused},
		"another type":           {change("path: /usr/bin/id", "path: [a]"), "Malformed", exitRefused},
		"another version":        {change("v1beta1", "v1"), "KindMismatch", exitRefused},
		"a version that is none": {change("  name: part", "  name: part\n  labels: {signature.kubescape.io/version: two}"), "Malformed", exitRefused},
		"no object":              {"kind: Pod\napiVersion: v1\n", "there is nothing to sign", exitUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, w.hostwarrant("sign", w.write("f.yaml", tt.text), "--key", key), tt.code, tt.says)
		})
	}
	file := w.write("f.yaml", plainFragment)
	for name, args := range map[string][]string{
		"--version of a fragment is a whole number": {"--version", "two"},
		"--class is a label value":                  {"--class", "a b"},
		"--bundle is a label value":                 {"--bundle", ""},
		"--serial is for phase scripts":             {"--serial", "1"},
		"--add is for phase scripts":                {"--add"},
		"give one --key":                            {"--key", key},
	} {
		wantFailed(t, w.hostwarrant(append([]string{"sign", file, "--key", key}, args...)...), exitUsage, name)
	}
	profile := w.write("profile.yaml", plainProfile)
	wantFailed(t, w.hostwarrant("sign", profile, "--key", key, "--class", "base"), exitUsage, "--class is for fragments")
	wantFailed(t, w.hostwarrant("sign", profile, "--key", key, "--embed-content=false"), exitUsage, "--embed-content is for fragments")
}

func TestSignTakesOnlyKeysOfTheFormat(t *testing.T) {
	w := newWorld(t)
	file := w.write("f.yaml", plainFragment)
	for _, kind := range []string{"ed25519", "ecdsa384", "rsa3072"} {
		key := w.write(kind, string(testkit.NewSigner(t, kind).PEM))
		wantFailed(t, w.hostwarrant("sign", file, "--key", key), exitUndecided, "KeyTypeRefused: ")
	}
	wantFailed(t, w.hostwarrant("sign", file, "--key", w.write("public", w.bob.Line+"\n")), exitUndecided, "does not hold the private half")
	wantFailed(t, w.hostwarrant("sign", file, "--key", file), exitUndecided, "neither a private key nor a public key line")
}

// What is valid and probably not meant is said, and not refused.
func TestSignWarnsOfFragmentsThatNothingTakesUp(t *testing.T) {
	w := newWorld(t)
	key := w.fragmentKeyFile()
	sign := func(text string, args ...string) string {
		t.Helper()
		r := w.hostwarrant(append([]string{"sign", w.write("f.yaml", text), "--key", key}, args...)...)
		if r.code != exitDone {
			t.Fatalf("exit %d: %s", r.code, r.err)
		}
		return r.err
	}
	empty := strings.Replace(plainFragment, "  execs:\n  - path: /usr/bin/id\n", "  execs: []\n", 1)
	binding := "apiVersion: kubescape.io/v1\nkind: RuntimeRuleAlertBinding\nmetadata: {name: b}\nspec: {rules: []}\n"
	for says, got := range map[string]string{
		"it has no class":  sign(plainFragment),
		"it has no bundle": sign(plainFragment, "--class", "base"),
		"sets nothing":     sign(empty, "--class", "base", "--bundle", "b"),
		"experimental":     sign(binding, "--class", "base"),
	} {
		if !strings.Contains(got, "warning: ") || !strings.Contains(got, says) {
			t.Errorf("want %q, got %q", says, got)
		}
	}
	if got := sign(plainFragment, "--class", "base", "--bundle", "b"); got != "" {
		t.Errorf("want silence, got %q", got)
	}
}

// What is written must verify as what was signed.
func TestCheckFindsAFragmentThatIsNotWhatWasSigned(t *testing.T) {
	w := newWorld(t)
	signed := w.hostwarrant("sign", w.write("f.yaml", plainFragment), "--key", w.fragmentKeyFile())
	f, err := manifest.Read([]byte(signed.out))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := f.Objects()
	if err != nil {
		t.Fatal(err)
	}
	s := &signing{c: &cli{err: &strings.Builder{}}}
	verified := signedBefore(objects[0])
	good := fragmentDraft{digest: verified.Digest, signer: verified.Signer}
	if err := s.checkFragment(objects[0], &good); err != nil {
		t.Fatal(err)
	}
	other, foreign := good, good
	other.digest = strings.Repeat("0", 64)
	foreign.signer = "key:" + other.digest
	wantReason(t, s.checkFragment(objects[0], &other), decision.BytesChanged)
	wantReason(t, s.checkFragment(objects[0], &foreign), decision.BytesChanged)
	changed, err := f.Set(0, []string{"spec", "imageID"}, "x")
	if err != nil {
		t.Fatal(err)
	}
	if objects, err = changed.Objects(); err != nil {
		t.Fatal(err)
	}
	wantReason(t, s.checkFragment(objects[0], &good), decision.NotCanonical)
}

func TestSignRefusesAnnotationsThatAreTooLong(t *testing.T) {
	w := newWorld(t)
	key := w.fragmentKeyFile()
	with := func(size int) string {
		return w.write("f.yaml", strings.Replace(plainFragment, "  name: part\n", "  name: part\n  annotations:\n    note: "+strings.Repeat("x", size)+"\n", 1))
	}
	wantFailed(t, w.hostwarrant("sign", with(maxAnnotations), "--key", key), exitRefused, "TooLarge: the annotations take")
	if r := w.hostwarrant("sign", with(maxAnnotations/2), "--key", key); r.code != exitDone {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// A directory of junk costs time in proportion, and hides nothing.
func TestManyUnsignedFragmentsHideNothing(t *testing.T) {
	w := newWorld(t)
	dir := testkit.CorpusDir(t, "fragments/node-agent")
	for i := range 2000 {
		text := strings.Replace(plainFragment, "name: part", fmt.Sprintf("name: part-%d\n  labels: {signature.kubescape.io/bundle: bundle37, signature.kubescape.io/fragment-class: base}", i), 1)
		w.write(fmt.Sprintf("junk/%d/%d.yaml", i/500, i), text)
	}
	policy := []string{"--policy", dir + "/trust-policy.signed.json", "--root", dir + "/keys/demo-root.pub"}
	r := w.hostwarrant(append([]string{"bundle", "assemble", w.path("junk"), dir + "/fragments"}, policy...)...)
	if r.code != exitDone || !strings.Contains(r.out, "acc1c4b5") || !strings.Contains(r.err, "2000 objects without a signature left out") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	w.write("junk/z.yaml", string(testkit.Corpus(t, "fragments/malleable/dup-spec.yaml")))
	wantFailed(t, w.hostwarrant(append([]string{"bundle", "assemble", w.path("junk"), dir + "/fragments"}, policy...)...), exitUndecided, "both hold ContainerProfile/bundle37-base")
	overlay := dir + "/fragments/bundle37-overlay-signed.yaml"
	wantFailed(t, w.hostwarrant(append([]string{"bundle", "assemble", w.path("junk"), overlay}, policy...)...), exitRefused, "bundle37-base: NotCanonical")
}

// Huge files and objects are refused by their size.
func TestHugeFragmentsAreRefused(t *testing.T) {
	w := newWorld(t)
	dir := testkit.CorpusDir(t, "fragments/node-agent")
	policy := []string{"--policy", dir + "/trust-policy.signed.json", "--root", dir + "/keys/demo-root.pub"}
	large := strings.Replace(plainFragment, "/usr/bin/id", "/"+strings.Repeat("x", 9<<20), 1)
	wantRefused(t, w.hostwarrant(append([]string{"verify", w.write("large.yaml", large)}, policy...)...), "TooLarge")
	wantFailed(t, w.hostwarrant("sign", w.path("large.yaml"), "--key", w.fragmentKeyFile()), exitRefused, "TooLarge")
	if err := os.Truncate(w.write("huge.yaml", plainFragment), manifest.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, w.hostwarrant(append([]string{"bundle", "explain", w.path("huge.yaml")}, policy...)...), exitUndecided, "is larger than")
}
