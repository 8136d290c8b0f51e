package testkit

import (
	"crypto/rand"
	"io"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Certify makes a user certificate for the principals that is valid for an hour
// around Now; change, where it is not nil, alters it before the CA signs.
func Certify(t testing.TB, ca Signer, key ssh.PublicKey, principals []string, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{
		Nonce: make([]byte, 32), Key: key, Serial: 7, CertType: ssh.UserCert, KeyId: "test", ValidPrincipals: principals,
		ValidAfter: uint64(Now().Add(-time.Hour).Unix()), ValidBefore: uint64(Now().Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}},
	}
	if change != nil {
		change(c)
	}
	SignCertificate(t, ca, c)
	return c
}

// SignCertificate signs whatever the certificate says: unlike x/crypto's own, it refuses nothing.
func SignCertificate(t testing.TB, ca Signer, c *ssh.Certificate) {
	t.Helper()
	if _, err := rand.Read(c.Nonce); err != nil {
		t.Fatal(err)
	}
	c.SignatureKey, c.Signature = ca.PublicKey(), nil
	data := c.Marshal()
	data = data[:len(data)-4] // the length of the signature that is not there yet
	sign := ca.Sign
	if algorithms, ok := ca.Signer.(ssh.AlgorithmSigner); ok && ca.PublicKey().Type() == ssh.KeyAlgoRSA {
		sign = func(r io.Reader, data []byte) (*ssh.Signature, error) {
			return algorithms.SignWithAlgorithm(r, data, ssh.KeyAlgoRSASHA512)
		}
	}
	signature, err := sign(rand.Reader, data)
	if err != nil {
		t.Fatal(err)
	}
	c.Signature = signature
}

// WithCertificate puts a certificate in place of the key of an armored
// signature, as ssh-keygen writes it: the key is not part of what is signed.
func WithCertificate(t testing.TB, armored string, c *ssh.Certificate) string {
	t.Helper()
	blob := ParseBlob(t, armored)
	blob.Key = c.Marshal()
	return blob.Armor()
}
