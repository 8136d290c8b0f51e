package keyring

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func noTerminal(string) ([]byte, error) { return nil, errors.New("there is no terminal to ask for it") }

// wantError wants an error that says so and does not hold key bytes.
func wantError(t *testing.T, err error, word string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("want an error with %q, got %v", word, err)
		return
	}
	if strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("the error shows the file: %v", err)
	}
}

func TestLoadReadsPrivateKeys(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa3072"} {
		t.Run(kind, func(t *testing.T) {
			want := testkit.NewSigner(t, kind)
			got, closer, err := Source{}.Load(testkit.WriteFile(t, t.TempDir(), "key", want.PEM))
			if err != nil {
				t.Fatal(err)
			}
			if ssh.FingerprintSHA256(got.PublicKey()) != want.Fingerprint {
				t.Error("another key")
			}
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLoadAsksForAPassphrase(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	path := testkit.WriteFile(t, t.TempDir(), "key", pem.EncodeToMemory(block))
	say := func(text string) Source {
		return Source{Passphrase: func(string) ([]byte, error) { return []byte(text), nil }}
	}
	if _, _, err := say("secret").Load(path); err != nil {
		t.Error(err)
	}
	_, _, err = say("wrong").Load(path)
	wantError(t, err, "cannot be opened with that passphrase")
	_, _, err = Source{Passphrase: noTerminal}.Load(path)
	wantError(t, err, "there is no terminal")
}

func TestLoadRefusesWhatIsNoKey(t *testing.T) {
	dir := t.TempDir()
	key := testkit.NewSigner(t, "ed25519")
	half := strings.Replace(string(key.PEM), "b3BlbnNzaC1rZXktdjE", "b3BlbnNzaC1rZXktdjA", 1)
	for name, tt := range map[string]struct{ text, word string }{
		"an empty file": {"", "neither a private key nor a public key"},
		"a text":        {"hello\n", "neither a private key nor a public key"},
		"a damaged key": {half, "is damaged"},
		"1 MiB of text": {strings.Repeat("x", maxKeyFile+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Source{Passphrase: noTerminal}.Load(testkit.WriteFile(t, dir, "key", []byte(tt.text)))
			wantError(t, err, tt.word)
		})
	}
	_, _, err := Source{}.Load(filepath.Join(dir, "none"))
	wantError(t, err, "opening key")
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "hostwarrant init") {
		t.Errorf("want a hint at init, got %v", err)
	}
}

func TestLoadRefusesAKeyThatOthersCanRead(t *testing.T) {
	path := testkit.WriteFile(t, t.TempDir(), "key", testkit.NewSigner(t, "ed25519").PEM)
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := Source{}.Load(path)
		wantError(t, err, "can be read by others")
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (Source{}).Load(path); err != nil {
		t.Error(err)
	}
}

func TestGenerateMakesAKeyThatLoads(t *testing.T) {
	pair, err := Generate(rand.Reader, "a comment")
	if err != nil {
		t.Fatal(err)
	}
	signer, _, err := Source{}.Load(testkit.WriteFile(t, t.TempDir(), "key", pair.Private))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if pair.Public != line+" a comment" {
		t.Errorf("want %q, got %q", line+" a comment", pair.Public)
	}
}
