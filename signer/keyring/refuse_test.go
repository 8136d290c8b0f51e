package keyring

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// openSSHFile is a private key file of OpenSSH as far as its public half (PROTOCOL.key).
func openSSHFile(public []byte) []byte {
	outer := ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Private              []byte
	}{"none", "none", "", 1, public, []byte("x")})
	return pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append([]byte("openssh-key-v1\x00"), outer...)})
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func pkix(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Nobody is asked for a passphrase, and no agent, for a key that is refused.
func TestLoadRefusesKeysThatMayNotSign(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(small, "test", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := ssh.Certificate{CertType: ssh.UserCert, ValidPrincipals: []string{"join@x"}, ValidBefore: ssh.CertTimeInfinity, Key: testkit.NewSigner(t, "rsa2048").PublicKey()}
	if err := certificate.SignCert(rand.Reader, testkit.NewSigner(t, "ed25519")); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"RSA of 2048 bits in PKCS #8":                pkcs8(t, small),
		"RSA of 2048 bits in PKCS #1":                pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(small)}),
		"RSA of 2048 bits with a passphrase":         pem.EncodeToMemory(locked),
		"the public half of RSA of 2048 bits":        []byte(testkit.NewSigner(t, "rsa2048").Line + "\n"),
		"the public half of RSA of 2048 bits in PEM": pkix(t, small.Public()),
		"a curve that SSH does not know":             pkcs8(t, curve),
		"the public half of such a curve":            pkix(t, curve.Public()),
		"a key that agrees on secrets and signs not": pkcs8(t, exchange),
		"the public half of a key that signs not":    pkix(t, exchange.Public()),
		"DSA in a file of OpenSSH":                   openSSHFile(ssh.Marshal(struct{ Type string }{"ssh-dss"})),
		"DSA, whatever its block holds":              pem.EncodeToMemory(&pem.Block{Type: "DSA PRIVATE KEY", Bytes: []byte("x")}),
		"a certificate of RSA of 2048 bits":          ssh.MarshalAuthorizedKey(&certificate),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Source{Passphrase: noTerminal}.Load(testkit.WriteFile(t, t.TempDir(), "key", file))
			wantError(t, err, string(decision.KeyTypeRefused))
		})
	}
}
