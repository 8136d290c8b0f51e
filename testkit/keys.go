package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// KeyTypes are the kinds of NewSigner that strict SSHSIG takes.
func KeyTypes() []string {
	return []string{"ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa3072", "sk-ed25519", "sk-ecdsa256"}
}

// Signer is a key pair made for one test.
type Signer struct {
	ssh.Signer
	// Line is the public key line, without a comment.
	Line string
	// Fingerprint is "SHA256:…".
	Fingerprint string
	// PEM is the private key as an OpenSSH file, nil for a security key.
	PEM []byte
}

// NewSigner makes a key: one of KeyTypes, or "rsa2048" and "sk-ed25519-untouched", which must be refused.
func NewSigner(t testing.TB, kind string) Signer {
	t.Helper()
	switch kind {
	case "sk-ed25519", "sk-ed25519-untouched":
		return describe(newSecurityKey(t, kind == "sk-ed25519"), nil)
	case "sk-ecdsa256":
		return describe(newECDSASecurityKey(t), nil)
	}
	private := newPrivateKey(t, kind)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	return describe(signer, pem.EncodeToMemory(block))
}

func describe(s ssh.Signer, private []byte) Signer {
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(s.PublicKey())), "\n")
	return Signer{Signer: s, Line: line, Fingerprint: ssh.FingerprintSHA256(s.PublicKey()), PEM: private}
}

func newPrivateKey(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	key, err := func() (crypto.Signer, error) {
		switch kind {
		case "ed25519":
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		case "ecdsa256":
			return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		case "ecdsa384":
			return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		case "ecdsa521":
			return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
		case "rsa2048":
			return rsa.GenerateKey(rand.Reader, 2048)
		case "rsa3072":
			return rsa.GenerateKey(rand.Reader, 3072)
		}
		t.Fatalf("no key type %q", kind)
		return nil, nil
	}()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// securityKey is a stand-in for a FIDO token: it makes sk-ssh-ed25519
// signatures (PROTOCOL.u2f) with or without the flag that says it was touched.
type securityKey struct {
	public  ssh.PublicKey
	private ed25519.PrivateKey
	touched bool
}

const skApplication = "ssh:"

func newSecurityKey(t testing.TB, touched bool) securityKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	blob := wireStrings(ssh.KeyAlgoSKED25519, string(public), skApplication)
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		t.Fatal(err)
	}
	return securityKey{public: key, private: private, touched: touched}
}

func (k securityKey) PublicKey() ssh.PublicKey { return k.public }

func (k securityKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	signed, suffix := assertion(data, k.touched)
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, signed), Rest: suffix}, nil
}

// assertion is what a token signs, and the end of it that the signature repeats.
func assertion(data []byte, touched bool) (signed, suffix []byte) {
	flags := byte(0)
	if touched {
		flags = 1
	}
	suffix = append([]byte{flags}, 0, 0, 0, 7)
	application, message := sha256.Sum256([]byte(skApplication)), sha256.Sum256(data)
	return append(append(application[:], suffix...), message[:]...), suffix
}

// ecdsaSecurityKey is a stand-in for a token with sk-ecdsa-sha2-nistp256 keys, always touched.
type ecdsaSecurityKey struct {
	public  ssh.PublicKey
	private *ecdsa.PrivateKey
}

func newECDSASecurityKey(t testing.TB) ecdsaSecurityKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(wireStrings(ssh.KeyAlgoSKECDSA256, "nistp256", string(point), skApplication))
	if err != nil {
		t.Fatal(err)
	}
	return ecdsaSecurityKey{public: key, private: private}
}

func (k ecdsaSecurityKey) PublicKey() ssh.PublicKey { return k.public }

func (k ecdsaSecurityKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	signed, suffix := assertion(data, true)
	digest := sha256.Sum256(signed)
	r, s, err := ecdsa.Sign(random, k.private, digest[:])
	if err != nil {
		return nil, err
	}
	return &ssh.Signature{Format: ssh.KeyAlgoSKECDSA256, Blob: ssh.Marshal(struct{ R, S *big.Int }{r, s}), Rest: suffix}, nil
}

// wireStrings encodes SSH strings (RFC 4251 section 5).
func wireStrings(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
