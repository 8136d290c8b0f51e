package keyring

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func certificateFile(t *testing.T, dir, name string, key ssh.PublicKey) string {
	t.Helper()
	c := testkit.Certify(t, testkit.NewSigner(t, "ed25519"), key, []string{"join@a"}, nil)
	return testkit.WriteFile(t, dir, name, []byte(c.Type()+" "+base64.StdEncoding.EncodeToString(c.Marshal())+" comment\n"))
}

// signs wants a signer whose public key is a certificate of the key, and that signs by it.
func signs(t *testing.T, s Source, path string, key testkit.Signer) {
	t.Helper()
	signer, closer, err := s.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, ok := signer.PublicKey().(*ssh.Certificate)
	if !ok || !bytes.Equal(c.Key.Marshal(), key.PublicKey().Marshal()) {
		t.Fatalf("the public key is %T", signer.PublicKey())
	}
	if _, err := sshsig.SignWithCertificates(rand.Reader, signer, "kpssh", []byte("x")); err != nil {
		t.Error(err)
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoadFindsThePrivateKeyBesideACertificate(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa384", "rsa3072"} {
		t.Run(kind, func(t *testing.T) {
			dir, key := t.TempDir(), testkit.NewSigner(t, kind)
			testkit.WriteFile(t, dir, "k", key.PEM)
			path := certificateFile(t, dir, "k-cert.pub", key.PublicKey())
			signs(t, Source{}, path, key)
			signs(t, Source{AgentSocket: testkit.Agent(t)}, path, key) // which holds nothing
		})
	}
}

func TestLoadFindsTheKeyOfACertificateInTheAgent(t *testing.T) {
	socket := testkit.Agent(t)
	for _, kind := range []string{"ed25519", "rsa3072"} {
		t.Run(kind, func(t *testing.T) {
			dir, key := t.TempDir(), testkit.NewSigner(t, kind)
			private := testkit.WriteFile(t, dir, "k", key.PEM)
			path := certificateFile(t, dir, "k-cert.pub", key.PublicKey())
			agent := func(args ...string) {
				add := exec.Command(testkit.Tool(t, "ssh-add"), args...)
				add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
				if out, err := add.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			agent("-q", private) // the key, and the certificate beside it
			if err := os.Remove(private); err != nil {
				t.Fatal(err)
			}
			signs(t, Source{AgentSocket: socket}, path, key)
			bare := testkit.WriteFile(t, dir, "bare.pub", []byte(key.Line+"\n"))
			agent("-q", "-d", "-k", bare) // -k: the key alone
			signs(t, Source{AgentSocket: socket}, path, key)
			_, _, err := Source{AgentSocket: socket}.Load(bare)
			wantError(t, err, "does not hold the key")
		})
	}
}

func TestLoadRefusesACertificateThatIsNotOfTheKey(t *testing.T) {
	dir, key, other := t.TempDir(), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	testkit.WriteFile(t, dir, "k", other.PEM)
	_, _, err := Source{}.Load(certificateFile(t, dir, "k-cert.pub", key.PublicKey()))
	wantError(t, err, "is not of the key")
	_, _, err = Source{}.Load(certificateFile(t, dir, "alone-cert.pub", key.PublicKey()))
	wantError(t, err, "SSH_AUTH_SOCK is not set")
	_, _, err = Source{}.Load(certificateFile(t, dir, "weak-cert.pub", testkit.NewSigner(t, "rsa2048").PublicKey()))
	wantError(t, err, "KeyTypeRefused")
	_, _, err = Source{}.Load(testkit.WriteFile(t, dir, "broken-cert.pub", []byte(ssh.CertAlgoED25519v01+" AAAA\n")))
	wantError(t, err, "Malformed")
}
