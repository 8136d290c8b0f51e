package sshsig_test

import (
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// FuzzParse: whatever parses has exactly one spelling, and what verifies is
// accepted by ssh-keygen too.
func FuzzParse(f *testing.F) {
	signer := testkit.NewSigner(f, "ed25519")
	f.Add([]byte(testkit.Sign(f, signer, namespace, message)))
	f.Add([]byte(testkit.Sign(f, testkit.NewSigner(f, "ecdsa256"), namespace, message)))
	f.Add([]byte(testkit.Sign(f, testkit.NewSigner(f, "sk-ed25519"), namespace, message)))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := sshsig.Parse(text)
		if err != nil {
			return
		}
		blob := testkit.ParseBlob(t, string(text))
		if again := blob.Armor(); again != string(text) && again != string(text)+"\n" {
			t.Errorf("parsed a second spelling:\n%s\nof\n%s", text, again)
		}
		if s.Verify(namespace, message) != nil {
			return
		}
		line := string(ssh.MarshalAuthorizedKey(s.PublicKey()))
		if !testkit.KeygenAccepts(t, line[:len(line)-1], namespace, message, text) {
			t.Errorf("we accept what ssh-keygen refuses:\n%s", text)
		}
	})
}

// FuzzParseWithCertificates: no certificate makes the reader panic, and what stands by itself is
// accepted by ssh-keygen too.
func FuzzParseWithCertificates(f *testing.F) {
	ca := testkit.NewSigner(f, "ed25519")
	for _, kind := range []string{"ed25519", "sk-ed25519", "ecdsa256"} {
		user := testkit.NewSigner(f, kind)
		c := testkit.Certify(f, ca, user.PublicKey(), []string{"someone"}, func(c *ssh.Certificate) { c.ValidAfter, c.ValidBefore = 0, 1<<37 })
		f.Add([]byte(testkit.WithCertificate(f, testkit.Sign(f, user, namespace, message), c)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := sshsig.ParseAllWithCertificates(text)
		if err != nil || len(all) != 1 || all[0].Certificate() == nil {
			return
		}
		c := all[0].Certificate()
		if sshsig.CheckCertificate(c, testkit.Now()) != nil || all[0].Verify(namespace, message) != nil || c.ValidPrincipals[0] != "someone" {
			return
		}
		line := "cert-authority " + string(ssh.MarshalAuthorizedKey(c.SignatureKey))
		if !testkit.KeygenAccepts(t, line[:len(line)-1], namespace, message, text) {
			t.Errorf("we accept what ssh-keygen refuses:\n%s", text)
		}
	})
}
