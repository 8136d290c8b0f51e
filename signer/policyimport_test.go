package main

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// pemKey writes a test key's public half as kubescape has it.
func pemKey(t *testing.T, s testkit.Signer) string {
	t.Helper()
	key, ok := s.PublicKey().(ssh.CryptoPublicKey)
	if !ok {
		t.Fatalf("%T", s.PublicKey())
	}
	der, err := x509.MarshalPKIXPublicKey(key.CryptoPublicKey())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// The published policies go through our document and come out byte for byte.
func TestPublishedPoliciesAreImportedAndExported(t *testing.T) {
	w := newWorld(t)
	root := w.write("demo.pub", string(testkit.Corpus(t, "fragments/node-agent/keys/demo-root.pub")))
	for _, name := range []string{"node-agent/trust-policy.signed.json", "node-agent/trust-policy.profiles-only.signed.json", "bob/trust-policy.signed.json"} {
		t.Run(name, func(t *testing.T) {
			published := w.write("trust-policy.signed.json", string(testkit.Corpus(t, "fragments/"+name)))
			wantFailed(t, w.hostwarrant("policy", "import", published, "--root", root, "--cluster", "prod-1"), exitUsage, "say --mode")
			r := w.hostwarrant("policy", "import", published, "--root", root, "--cluster", "prod-1", "--mode", "enforce")
			if r.code != exitDone {
				t.Fatalf("exit %d: %s", r.code, r.err)
			}
			for _, said := range []string{"not carried over: the signature", "vouches for no phase script", "published demo root"} {
				if !strings.Contains(r.err, said) {
					t.Errorf("stderr does not say %q: %s", said, r.err)
				}
			}
			p, err := trustpolicy.ReadUnverified([]byte(r.out))
			if err != nil || len(p.FragmentClasses) != 3 || p.Mode(testkit.Now()) != trustpolicy.Enforce || !p.RequireWarrant {
				t.Errorf("%+v, %v", p, err)
			}
			document := w.write("document.yaml", r.out)
			r = w.hostwarrant("policy", "export", document, "--like", published)
			if r.code != exitDone || r.out != w.read(published) {
				t.Errorf("exit %d, or it differs: %s", r.code, r.err)
			}
			if !strings.Contains(r.err, `keeps its mode ""`) || !strings.Contains(r.err, "good for every cluster, and for ever") {
				t.Errorf("stderr: %s", r.err)
			}
			changed := w.write("changed.yaml", strings.Replace(w.read(document), `"execs"`, `"opens"`, 1))
			wantFailed(t, w.hostwarrant("policy", "export", changed, "--like", published), exitRefused, "Tampered")
		})
	}
	bad := w.write("bad.json", string(testkit.Corpus(t, "fragments/node-agent/trust-policy.badsigner.signed.json")))
	wantFailed(t, w.hostwarrant("policy", "import", bad, "--root", root, "--cluster", "prod-1", "--mode", "enforce"), exitRefused, "SignerUnknown")
	r := w.hostwarrant("policy", "import", root)
	if r.code != exitDone || !strings.HasPrefix(r.out, "ecdsa-sha2-nistp256 ") || !strings.Contains(r.err, "published demo root") {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
	back := w.hostwarrant("policy", "export", w.write("line.pub", r.out))
	if back.code != exitDone || strings.TrimSpace(back.out) != strings.TrimSpace(w.read(root)) {
		t.Errorf("exit %d, %q", back.code, back.out)
	}
}

// A policy that enforces for any cluster is refused by each that has a name: who makes one is told before it is signed.
func TestAPolicyForAnyClusterIsToldWhereItGoes(t *testing.T) {
	w := newWorld(t)
	root := w.write("demo-root.pub", string(testkit.Corpus(t, "fragments/node-agent/keys/demo-root.pub")))
	published := w.write("published.json", string(testkit.Corpus(t, "fragments/node-agent/trust-policy.signed.json")))
	const said = "one that has a name refuses that (PolicyWrongCluster)"
	for _, tt := range []struct {
		cluster, mode string
		warned        bool
	}{{"any", "enforce", true}, {"any", "warn", false}, {"prod-1", "enforce", false}} {
		r := w.hostwarrant("policy", "import", published, "--root", root, "--cluster", tt.cluster, "--mode", tt.mode)
		if r.code != exitDone || strings.Contains(r.err, said) != tt.warned {
			t.Errorf("import for %s in mode %s: exit %d, %s", tt.cluster, tt.mode, r.code, r.err)
		}
		document := w.write("document.yaml", r.out)
		w.write("document.yaml.sig", testkit.Sign(t, w.alice, trustpolicy.Namespace, []byte(r.out)))
		if r = w.hostwarrant("policy", "pack", document); r.code != exitDone || strings.Contains(r.err, said) != tt.warned {
			t.Errorf("pack for %s in mode %s: exit %d, %s", tt.cluster, tt.mode, r.code, r.err)
		}
	}
}

// What we export verifies by the other format's rules, and is imported again.
func TestExportSigns(t *testing.T) {
	w := newWorld(t)
	hex, gone := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	document := testkit.PolicyDocument(w.alice) + `fragmentClasses:
  base: {signers: ["key:` + hex + `", "key:` + gone + `"], allowedSpecPaths: [execs], values: {execs: ["/usr/bin/*"]}}
ruleClasses: {overlay: {signers: ["key:` + gone + `"], allowedRuleIDs: [R0001]}}
bindingClasses: {base: {signers: ["key:` + hex + `"]}}
learners: ["system:serviceaccount:kubescape:node-agent"]
floors: {a: 1}
revoked: {fragmentSigners: ["key:` + gone + `"]}
`
	policy := w.write("document.yaml", document)
	key := w.key("bob", w.bob) // ECDSA P-256
	r := w.hostwarrant("policy", "export", policy, "--key", key)
	if r.code != exitDone || !strings.Contains(r.out, `"mode": "enforce"`) || !strings.Contains(r.out, `"policyVersion": 3`) || strings.Contains(r.out, gone) {
		t.Fatalf("exit %d, %s%s", r.code, r.out, r.err)
	}
	for _, said := range []string{"joinProfiles", "learners", "floors", "fragmentClasses.base.values", "ruleClasses.overlay.mayDisable"} {
		if !strings.Contains(r.err, "not carried over: "+said) {
			t.Errorf("stderr does not name %s: %s", said, r.err)
		}
	}
	exported := w.write("trust-policy.signed.json", r.out)
	root, other := w.write("bob.pem", pemKey(t, w.bob)), w.write("other.pem", pemKey(t, testkit.NewSigner(t, "ecdsa256")))
	r = w.hostwarrant("policy", "import", exported, "--root", root, "--cluster", "prod-1", "--valid-for", "30d")
	if r.code != exitDone || !strings.Contains(r.out, "version: 3\n") || !strings.Contains(r.out, `expires: "2026-12-30T12:00:00Z"`) {
		t.Fatalf("exit %d, %s%s", r.code, r.out, r.err)
	}
	if !strings.Contains(r.err, "ruleClasses.overlay: rules that are switched off are refused") {
		t.Errorf("stderr: %s", r.err)
	}
	r = w.hostwarrant("policy", "import", exported, "--cluster", "prod-1=https://10.0.0.5:6443", "--mode", "warn", "--version", "9")
	if r.code != exitDone || !strings.Contains(r.err, "NOT VERIFIED") || !strings.Contains(r.out, `warnUntil: "2026-12-30T12:00:00Z"`) || !strings.Contains(r.out, "version: 9\n") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		word string
	}{
		"another root":               {[]string{"import", exported, "--root", other, "--cluster", "a"}, exitRefused, "SignerUnknown"},
		"a root that is no P-256":    {[]string{"import", exported, "--root", w.pubs, "--cluster", "a"}, exitUndecided, "KeyTypeRefused"},
		"two roots":                  {[]string{"import", exported, "--root", w.write("two", pemKey(t, w.bob)+pemKey(t, testkit.NewSigner(t, "ecdsa256"))), "--cluster", "a"}, exitUndecided, "this format has one root"},
		"a root that is missing":     {[]string{"import", exported, "--root", "missing", "--cluster", "a"}, exitUndecided, "missing"},
		"no cluster":                 {[]string{"import", exported, "--root", root}, exitUsage, "--cluster is missing"},
		"a cluster that cannot be":   {[]string{"import", exported, "--root", root, "--cluster", "A"}, exitUsage, "--cluster is"},
		"an unknown mode":            {[]string{"import", exported, "--root", root, "--cluster", "a", "--mode", "alert"}, exitUsage, "enforce or warn"},
		"a term in hours":            {[]string{"import", exported, "--root", root, "--cluster", "a", "--valid-for", "90h"}, exitUsage, "number of days"},
		"a changed file":             {[]string{"import", w.write("changed.json", strings.Replace(w.read(exported), `"policyVersion": 3`, `"policyVersion": 4`, 1)), "--root", root, "--cluster", "a"}, exitRefused, "Tampered"},
		"no policy file":             {[]string{"import", policy, "--cluster", "a"}, exitUndecided, "Malformed"},
		"a missing file":             {[]string{"import", "missing", "--cluster", "a"}, exitUndecided, "missing"},
		"import a private key":       {[]string{"import", key}, exitUndecided, "is a private key"},
		"export a private key":       {[]string{"export", key}, exitUndecided, "is a private key"},
		"export of two roots":        {[]string{"export", w.write("two.pub", w.alice.Line+"\n"+w.bob.Line+"\n")}, exitUndecided, "two.pub holds 2 keys"},
		"export without a key":       {[]string{"export", policy}, exitUsage, "either --key"},
		"export with both":           {[]string{"export", policy, "--key", key, "--like", exported}, exitUsage, "either --key"},
		"export by an Ed25519 key":   {[]string{"export", policy, "--key", w.key("alice", w.alice)}, exitUndecided, "KeyTypeRefused"},
		"export by a missing key":    {[]string{"export", policy, "--key", "missing"}, exitUndecided, "missing"},
		"export without classes":     {[]string{"export", w.policy, "--key", key}, exitRefused, "needs one"},
		"export like a missing file": {[]string{"export", policy, "--like", "missing"}, exitUndecided, "missing"},
		"export like no policy file": {[]string{"export", policy, "--like", policy}, exitUndecided, "Malformed"},
		"export a broken policy":     {[]string{"export", w.write("broken.yaml", document+"speed: 3\n"), "--key", key}, exitRefused, "PolicyMalformed"},
		"export an Ed25519 line":     {[]string{"export", w.pubs}, exitUndecided, "KeyTypeRefused"},
		"import a weak PEM key":      {[]string{"import", w.write("weak.pem", pemKey(t, testkit.NewSigner(t, "rsa2048")))}, exitUndecided, "PolicyMalformed"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, w.hostwarrant(append([]string{"policy"}, tt.args...)...), tt.code, tt.word)
		})
	}
}
