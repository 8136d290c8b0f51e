package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// ecdsaKey gives the P-256 key behind an SSH public key.
func ecdsaKey(key ssh.PublicKey) (*ecdsa.PublicKey, error) {
	if k, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := k.CryptoPublicKey().(*ecdsa.PublicKey); ok {
			return public, signature.CheckKey(public)
		}
	}
	return nil, signature.CheckKey(nil)
}

// signPolicyFile signs the policy of a file as kubescape's sign-object does: a certificate of the key by
// itself, good for a year, and a signature over the policy's hash.
func (c *cli) signPolicyFile(f *policyfile.File, key ssh.Signer) error {
	public, err := ecdsaKey(key.PublicKey())
	if err != nil {
		return err
	}
	signer := messageSigner{key, public, c.rand}
	digest, err := f.Policy.Digest()
	if err != nil {
		return err
	}
	signed, err := signer.SignMessage(c.rand, []byte(digest), crypto.SHA256)
	if err != nil {
		return err
	}
	now := c.now()
	serial, err := rand.Int(c.rand, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return decision.Errorf(decision.Internal, "making a serial number: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "local-key"}, NotBefore: now, NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(c.rand, template, template, public, signer)
	if err != nil {
		return decision.Errorf(decision.Internal, "making a certificate: %v", err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	f.Annotations = signature.Annotations(certificate, signed, now)
	return f.Verify(public)
}

// messageSigner lets an SSH key, in a file or in an agent, sign as X.509 and kubescape have it: the same
// hash of the message, in another encoding.
type messageSigner struct {
	key    ssh.Signer
	public *ecdsa.PublicKey
	rand   io.Reader
}

func (s messageSigner) Public() crypto.PublicKey { return s.public }

// Sign would need to sign a digest, which an agent does not do.
func (s messageSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("this key signs whole messages only")
}

// SignMessage gives an ASN.1 signature of the SHA-256 of a message.
func (s messageSigner) SignMessage(_ io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	if opts.HashFunc() != crypto.SHA256 {
		return nil, fmt.Errorf("a P-256 key signs with SHA-256, not %s", opts.HashFunc())
	}
	signature, err := s.key.Sign(s.rand, message)
	if err != nil {
		return nil, err
	}
	var numbers struct{ R, S *big.Int }
	if err := ssh.Unmarshal(signature.Blob, &numbers); err != nil {
		return nil, fmt.Errorf("reading the signature: %v", err)
	}
	return asn1.Marshal(numbers)
}

// isPEM tells a PEM public key from a policy file.
func isPEM(text []byte) bool {
	block, _ := pem.Decode(text)
	return block != nil && block.Type == "PUBLIC KEY"
}

// demoKey is the fingerprint, in kubescape's form, of the root key whose private half is published.
const demoKey = "key:d0cc7f2e82d99699d7a5f7078a9f30ec4847d13b6e41e91e224e0a47b32b9f9e"

// documentTime is a time as a policy document has it.
func documentTime(t time.Time) string { return `"` + stamp(t) + `"` }
