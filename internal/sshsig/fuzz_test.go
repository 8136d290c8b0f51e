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
