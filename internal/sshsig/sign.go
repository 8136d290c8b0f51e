package sshsig

import (
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// signHash is ssh-keygen's default.
const signHash = "sha512"

// Sign returns the canonical armored signature of message in namespace. What it
// made is parsed and verified before it is returned: a signer (an agent, a
// token) that answers with something else is an error, not a bad signature.
func Sign(rand io.Reader, signer ssh.Signer, namespace string, message []byte) ([]byte, error) {
	return sign(rand, signer, signer.PublicKey(), namespace, message)
}

// SignWithCertificates is Sign for whoever's readers list authorities: the
// signer's public key may be a user certificate, which the block then names in
// place of the key, as ssh-keygen writes it. One that no reader would ever take
// is refused; whether it is in its term is for CheckCertificate.
func SignWithCertificates(rand io.Reader, signer ssh.Signer, namespace string, message []byte) ([]byte, error) {
	certificate, ok := signer.PublicKey().(*ssh.Certificate)
	if !ok {
		return Sign(rand, signer, namespace, message)
	}
	if err := checkShape(certificate, ssh.UserCert); err != nil {
		return nil, err
	}
	if err := checkAuthority(certificate); err != nil {
		return nil, err
	}
	return sign(rand, signer, certificate.Key, namespace, message)
}

// CertifiedKey is the key of a certificate, and a plain key itself.
func CertifiedKey(key ssh.PublicKey) ssh.PublicKey {
	if certificate, ok := key.(*ssh.Certificate); ok {
		return certificate.Key
	}
	return key
}

// sign signs with a key, which is the signer's own, or what its certificate certifies.
func sign(rand io.Reader, signer ssh.Signer, key ssh.PublicKey, namespace string, message []byte) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	// check: WrongNamespace: an empty namespace would be good for everything; ssh-keygen refuses it too
	if namespace == "" {
		return nil, decision.Errorf(decision.WrongNamespace, "the namespace is empty")
	}
	signature, err := signData(rand, signer, key, signedData(namespace, signHash, message))
	if err != nil {
		return nil, err
	}
	raw := wire.AppendString(nil, signature.Format)
	raw = wire.AppendString(raw, signature.Blob)
	raw = append(raw, signature.Rest...)

	blob := []byte(magic)
	blob = append(blob, 0, 0, 0, version)
	blob = wire.AppendString(blob, signer.PublicKey().Marshal())
	blob = wire.AppendString(blob, namespace)
	blob = wire.AppendString(blob, "") // reserved
	blob = wire.AppendString(blob, signHash)
	blob = wire.AppendString(blob, raw)

	armored := armor(blob)
	made, err := ParseAllWithCertificates(armored)
	if err != nil {
		return nil, err
	}
	if err := made[0].Verify(namespace, message); err != nil {
		return nil, err
	}
	return armored, nil
}

// signData asks an RSA key for SHA-512 (RFC 8332); plain Sign would use SHA-1.
func signData(rand io.Reader, signer ssh.Signer, key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	sign := signer.Sign
	if key.Type() == ssh.KeyAlgoRSA {
		rsa, ok := signer.(ssh.AlgorithmSigner)
		// check: KeyTypeRefused: SHA-1 signatures can be forged
		if !ok {
			return nil, decision.Errorf(decision.KeyTypeRefused, "this RSA key can only sign with SHA-1")
		}
		sign = func(rand io.Reader, data []byte) (*ssh.Signature, error) {
			return rsa.SignWithAlgorithm(rand, data, ssh.KeyAlgoRSASHA512)
		}
	}
	signature, err := sign(rand, data)
	if err != nil {
		return nil, decision.Errorf(decision.Internal, "signing with %s: %v", Fingerprint(key), err)
	}
	return signature, nil
}
