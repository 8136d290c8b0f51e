package main

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Where hosts have karpenter-provider-ssh's shim, verify says what of scope and threshold they do not hold, and
// says nothing where there is nothing to hold.
func TestVerifyWarnsOfWhatUpstreamsShimDoesNotHold(t *testing.T) {
	w := newWorld(t)
	good := goodScripts()
	scoped := strings.Replace(testkit.PolicyDocument(w.alice, w.bob), "name: signer-0", "name: signer-0, profiles: [tls-*]", 1)
	certified := strings.Replace(scoped, "name: signer-0", "name: ca, certAuthority: true", 1)
	both := w.signedBy(w.alice, good)
	both[script.Join] += testkit.Sign(t, w.bob, script.Namespace, []byte(good[script.Join]))
	principals := []string{"install@tls-bootstrap", "join@tls-bootstrap", "leave@tls-bootstrap", "kpssh"}
	byCertificate := w.signedBy(w.stranger, good)
	for phase, signature := range byCertificate {
		byCertificate[phase] = testkit.WithCertificate(t, signature, testkit.Certify(t, w.alice, w.stranger.PublicKey(), principals, nil))
	}
	const unheld = ": scope and threshold hold here and at the relay only: a host with karpenter-provider-ssh's shim takes the script"
	scope := func(name string) string {
		return `"` + name + `" has a narrower scope than everything: karpenter-provider-ssh's shim does not hold it to that`
	}
	for name, c := range map[string]struct {
		document   string
		signatures map[script.Phase]string
		profile    []string // warnings of the profile
		policy     []string // and of the policy
	}{
		"a signer for everything": {testkit.PolicyDocument(w.alice, w.bob), w.signedBy(w.alice, good), nil, nil},
		"a signer for some":       {scoped, w.signedBy(w.alice, good), []string{"install" + unheld, "join" + unheld, "leave" + unheld}, []string{scope("signer-0")}},
		"another one's scope":     {scoped, w.signedBy(w.bob, good), nil, []string{scope("signer-0")}},
		"a revoked signer's scope": {
			scoped + "revoked: {signers: [\"" + w.alice.Fingerprint + "\"]}\n", w.signedBy(w.bob, good), nil, nil,
		},
		"two for a phase": {
			strings.Replace(testkit.PolicyDocument(w.alice, w.bob), "thresholds: {}", "thresholds: {join: 2}", 1), both,
			[]string{"join" + unheld},
			[]string{"join needs 2 signers: karpenter-provider-ssh's shim is content with one"},
		},
		"a certificate of an authority for some": {certified, byCertificate, []string{"install" + unheld, "join" + unheld, "leave" + unheld}, []string{scope("ca")}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := w.writePolicy("upstream-policy.json", c.document)
			profile := w.write("upstream-profile.json", w.profile(good, c.signatures))
			verify := func(path string, flags ...string) result {
				return w.hostwarrant(append([]string{"verify", path, "--policy", policy, "--root", w.pubs}, flags...)...)
			}
			for path, want := range map[string][]string{profile: c.profile, policy: c.policy} {
				r := verify(path, "--for-upstream-shim")
				wantVerified(t, r)
				if strings.Count(r.err, "karpenter-provider-ssh's shim") != len(want) {
					t.Errorf("want the warnings %q, got %q", want, r.err)
				}
				for _, text := range want {
					if !strings.Contains(r.err, "warning: "+path+": "+text) && !strings.Contains(r.err, "warning: "+path+": signer "+text) {
						t.Errorf("want the warning %q, got %q", text, r.err)
					}
				}
				if r := verify(path); strings.Contains(r.err, "karpenter-provider-ssh's shim") {
					t.Errorf("without the flag: %q", r.err)
				}
			}
		})
	}
}
