package signature

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// certified gives the key of the certificate in an annotation: one PEM block, P-256, signed by that key itself.
func certified(annotation string) (*ecdsa.PublicKey, error) {
	bad := decision.Errorf(decision.SignatureMalformed, "the certificate is not one PEM block of an X.509 certificate")
	text, ok := Decode(annotation)
	// check: SignatureMalformed: a second spelling of the same certificate
	if !ok {
		return nil, decision.Errorf(decision.SignatureMalformed, "the certificate is not base64")
	}
	block, rest := pem.Decode(text)
	// check: SignatureMalformed: two readers may take different ones of several blocks, or read what stands around them
	if block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 || !bytes.HasPrefix(text, []byte("-----BEGIN")) {
		return nil, bad
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	// check: SignatureMalformed: what is no certificate names no key
	if err != nil {
		return nil, bad
	}
	key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, CheckKey(nil)
	}
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	// check: SignatureInvalid: whoever made the certificate had not the key that it names
	if certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature) != nil {
		return nil, decision.Errorf(decision.SignatureInvalid, "the certificate is not signed by its own key")
	}
	return key, nil
}

// CheckKey refuses a key that may not sign in this format. The error carries KeyTypeRefused.
func CheckKey(key *ecdsa.PublicKey) error {
	// check: KeyTypeRefused: the format has one kind of key
	if key == nil || key.Curve != elliptic.P256() {
		return decision.Errorf(decision.KeyTypeRefused, "the key is not ECDSA P-256").Try("use an ECDSA P-256 key")
	}
	return nil
}

// Fingerprint is how policies name a key: "key:" and the SHA-256 of its SPKI in hex.
func Fingerprint(key *ecdsa.PublicKey) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", decision.Errorf(decision.KeyTypeRefused, "the key cannot be encoded: %v", err)
	}
	digest := sha256.Sum256(der)
	return "key:" + hex.EncodeToString(digest[:]), nil
}
