package allowedsigners_test

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// FuzzParse: no list makes the reader panic, and what a list allows is allowed by ssh-keygen too.
func FuzzParse(f *testing.F) {
	key, ca := testkit.NewSigner(f, "ed25519"), testkit.NewSigner(f, "ecdsa256")
	raw := testkit.Sign(f, key, namespace, message)
	certified := testkit.WithCertificate(f, raw, testkit.Certify(f, ca, key.PublicKey(), []string{"alice"}, nil))
	for _, list := range []string{
		"alice " + key.Line + "\n",
		"# comment\r\n\"a b\",*,!bob\t" + key.Line + " alice\r\n",
		`al?ce namespaces="*,!git",valid-after="20200101Z",valid-before="209901010000Z" ` + key.Line,
		`* CERT-AUTHORITY,namespaces="kpssh" ` + ca.Line + "\n\n" + `alice valid-before="20261130120000Z" ` + key.Line,
	} {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		for _, signature := range []string{raw, certified} {
			q := ask(string(list), signature, "alice")
			if q.ours() == nil && !q.keygen(t) {
				t.Errorf("we accept what ssh-keygen refuses:\n%s", list)
			}
		}
	})
}
