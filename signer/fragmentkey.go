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
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// makeP256 is how to get a key that may sign in kubescape's format.
const makeP256 = "ssh-keygen -t ecdsa -b 256 -f FILE makes one that may; cosign generate-key-pair too"

// ecdsaKey gives the P-256 key behind an SSH public key.
func ecdsaKey(key ssh.PublicKey) (*ecdsa.PublicKey, error) {
	var public *ecdsa.PublicKey
	if k, ok := key.(ssh.CryptoPublicKey); ok {
		if p256, ok := k.CryptoPublicKey().(*ecdsa.PublicKey); ok {
			public = p256
		}
	}
	if err := signature.CheckKey(public); err != nil {
		return nil, decision.Errorf(decision.From(err).Reason, "%s keys do not sign in this format, only ECDSA P-256 does", key.Type()).Try(makeP256)
	}
	return public, nil
}

// fragmentKey signs as kubescape's sign-object does: over a digest, with a certificate of the key by itself.
type fragmentKey struct {
	signer      messageSigner
	fingerprint string
	certificate []byte // PEM
	at          time.Time
}

// newFragmentKey makes the certificate, good for a year: no reader of the format looks at its dates.
func (c *cli) newFragmentKey(key ssh.Signer) (*fragmentKey, error) {
	public, err := ecdsaKey(key.PublicKey())
	if err != nil {
		return nil, err
	}
	fingerprint, err := signature.Fingerprint(public)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(c.rand, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, decision.Errorf(decision.Internal, "making a serial number: %v", err)
	}
	now := c.now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "local-key"}, NotBefore: now, NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}
	signer := messageSigner{key, public, c.rand}
	der, err := x509.CreateCertificate(c.rand, template, template, public, signer)
	if err != nil {
		return nil, decision.Errorf(decision.Internal, "making a certificate: %v", err)
	}
	return &fragmentKey{signer, fingerprint, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), now}, nil
}

// sign gives the signature of a digest, 64 hex digits.
func (k *fragmentKey) sign(digest string) ([]byte, error) {
	signed, err := k.signer.SignMessage(k.signer.rand, []byte(digest), crypto.SHA256)
	if err != nil {
		return nil, decision.Errorf(decision.Internal, "signing: %v", err)
	}
	return signed, nil
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
