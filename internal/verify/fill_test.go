package verify_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestFillSigners(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	many := make([]testkit.Signer, 17)
	for i := range many {
		many[i] = testkit.NewSigner(t, "ed25519")
	}
	with := func(signers ...testkit.Signer) verify.Snapshot {
		return verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(signers...), root), Now: testkit.Now()}
	}
	late := with(signer)
	late.Now = late.Policy.Expires
	revoked := strings.Replace(testkit.PolicyDocument(signer), "joinProfiles:", "revoked: {signers: [\""+signer.Fingerprint+"\"]}\njoinProfiles:", 1)
	raw := goodHost()
	raw.ExecMode = "Raw"
	tests := map[string]struct {
		s    verify.Snapshot
		h    *object.Host
		want []string
		why  string
	}{
		"an empty list":      {with(signer), goodHost(), []string{signer.Line}, ""},
		"a list":             {with(signer), goodHost(root), nil, ""},
		"a Raw host":         {with(signer), raw, nil, ""},
		"sixteen keys":       {with(many[:16]...), goodHost(), lines(many[:16]), ""},
		"seventeen keys":     {with(many...), goodHost(), nil, "17 keys"},
		"no key that counts": {verify.Snapshot{Policy: testkit.Policy(t, revoked, root), Now: testkit.Now()}, goodHost(), nil, "no plain key"},
		"no policy":          {verify.Snapshot{Now: testkit.Now()}, goodHost(), nil, "no trust policy is in force"},
		"an expired policy":  {late, goodHost(), nil, "no trust policy is in force"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, why := verify.FillSigners(tt.s, tt.h)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("signers (-want +got):\n%s", diff)
			}
			if (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) {
				t.Errorf("why is %q, want %q", why, tt.why)
			}
		})
	}
}

func lines(signers []testkit.Signer) []string {
	var all []string
	for _, s := range signers {
		all = append(all, s.Line)
	}
	return all
}
