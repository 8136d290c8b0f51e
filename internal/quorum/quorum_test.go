package quorum_test

import (
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestSigners(t *testing.T) {
	a, b, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	message := []byte("message\n")
	sign := func(s testkit.Signer) string { return testkit.Sign(t, s, "test", message) }
	again, _, _, _, err := ssh.ParseAuthorizedKey([]byte(a.Line + " with a comment"))
	if err != nil {
		t.Fatal(err)
	}
	may := []ssh.PublicKey{a.PublicKey(), again, b.PublicKey()}
	tests := map[string]struct {
		signatures []string
		count      int
		want       decision.Reason
		where      string
	}{
		"none":                   {nil, 0, decision.Verified, ""},
		"one":                    {[]string{sign(a)}, 1, decision.Verified, ""},
		"one twice":              {[]string{sign(a), sign(a)}, 1, decision.Verified, ""},
		"two and a stranger":     {[]string{sign(stranger), sign(b), sign(a)}, 2, decision.Verified, ""},
		"another namespace":      {[]string{sign(b), testkit.Sign(t, a, "other", message)}, 0, decision.WrongNamespace, "signatures[1]"},
		"another message":        {[]string{testkit.Sign(t, a, "test", []byte("x"))}, 0, decision.SignatureInvalid, "signatures[0]"},
		"a newline more":         {[]string{testkit.Sign(t, a, "test", []byte("message\n\n"))}, 0, decision.NewlineChanged, "signatures[0]"},
		"no signature at all":    {[]string{"x"}, 0, decision.SignatureMalformed, "signatures[0]"},
		"a stranger's other one": {[]string{testkit.Sign(t, stranger, "other", message)}, 0, decision.Verified, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			signed, err := quorum.Signers("test", message, tt.signatures, may)
			reason, where := decision.Verified, ""
			if err != nil {
				e := decision.From(err)
				reason, where = e.Reason, e.Where
			}
			if reason != tt.want || where != tt.where || len(signed) != tt.count {
				t.Errorf("%d keys, %s at %q (%v)", len(signed), reason, where, err)
			}
		})
	}
	if n := quorum.Count([]ssh.PublicKey{a.PublicKey(), stranger.PublicKey()}, may); n != 1 {
		t.Errorf("%d of them count", n)
	}
}
