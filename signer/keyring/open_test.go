package keyring

import (
	"bytes"
	"crypto/elliptic"
	"errors"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// cosignKey makes a key file as `cosign generate-key-pair` does.
func cosignKey(t *testing.T, password string) []byte {
	t.Helper()
	private, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func TestCosignKeys(t *testing.T) {
	key := cosignKey(t, "secret")
	older := bytes.ReplaceAll(key, []byte("SIGSTORE"), []byte("COSIGN"))
	says := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), nil }
	}
	for name, tt := range map[string]struct {
		file   []byte
		source Source
		word   string // of the error; empty where there is none
	}{
		"COSIGN_PASSWORD opens it":          {key, Source{CosignPassword: []byte("secret"), Passphrase: noTerminal}, ""},
		"so does the terminal":              {key, Source{Passphrase: says("secret")}, ""},
		"an older label is read":            {older, Source{CosignPassword: []byte("secret")}, ""},
		"the variable goes before":          {key, Source{CosignPassword: []byte("secret"), Passphrase: says("wrong")}, ""},
		"the variable is wrong":             {key, Source{CosignPassword: []byte("Secret"), Passphrase: says("secret")}, "cannot be opened with the password in COSIGN_PASSWORD"},
		"the terminal is wrong":             {key, Source{Passphrase: says("Secret")}, "cannot be opened with that passphrase"},
		"a password may be empty":           {cosignKey(t, ""), Source{CosignPassword: []byte{}}, ""},
		"an empty answer is a password":     {cosignKey(t, ""), Source{Passphrase: func(string) ([]byte, error) { return nil, nil }}, ""},
		"an empty variable opens no other":  {key, Source{CosignPassword: []byte{}}, "cannot be opened with the password in COSIGN_PASSWORD"},
		"nobody can be asked":               {key, Source{Passphrase: noTerminal}, "has a password, and there is no terminal"},
		"the block is another one's inside": {bytes.ReplaceAll(key, []byte("ENCRYPTED SIGSTORE "), nil), Source{}, "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			signer, _, err := tt.source.Load(testkit.WriteFile(t, t.TempDir(), "cosign.key", tt.file))
			if tt.word != "" {
				wantError(t, err, tt.word)
				return
			}
			if err != nil || signer.PublicKey().Type() != "ecdsa-sha2-nistp256" {
				t.Errorf("want an ECDSA P-256 key, got %v", err)
			}
		})
	}
}

// What an error says must not hold a line of the file it is about, however the file is damaged.
func TestErrorsShowNothingOfTheFile(t *testing.T) {
	var tried int
	for _, file := range [][]byte{testkit.NewSigner(t, "ed25519").PEM, testkit.NewSigner(t, "ecdsa256").PEM, cosignKey(t, "x")} {
		lines := strings.Split(string(file), "\n")
		for cut := range lines {
			damaged := strings.Join(append(append([]string{}, lines[:cut]...), lines[cut+1:]...), "\n")
			path := testkit.WriteFile(t, t.TempDir(), "key", []byte(damaged))
			_, _, err := Source{Passphrase: noTerminal, CosignPassword: []byte("x")}.Load(path)
			if err == nil {
				continue // only the empty last line is gone
			}
			tried++
			var hint interface{ Hint() string }
			if !errors.As(err, &hint) || hint.Hint() == "" {
				t.Errorf("%v has no hint", err)
			}
			for _, line := range lines {
				if len(line) > 8 && strings.Contains(err.Error(), line) {
					t.Errorf("shows a line of the file: %v", err)
				}
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d damaged files were tried", tried)
	}
}
