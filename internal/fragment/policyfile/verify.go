package policyfile

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// The annotations of the format.
const (
	prefix                = "signature.kubescape.io/"
	AnnotationSignature   = prefix + "signature"
	AnnotationCertificate = prefix + "certificate"
	AnnotationContent     = prefix + "content"
	AnnotationIssuer      = prefix + "issuer"
	AnnotationIdentity    = prefix + "identity"
	AnnotationTimestamp   = prefix + "timestamp"
)

// Verify reports whether the root signed the policy. The error carries Unsigned,
// SignatureMalformed, SignerUnknown, KeyTypeRefused or Tampered.
func (f *File) Verify(root *ecdsa.PublicKey) error {
	if err := CheckKey(root); err != nil {
		return err
	}
	// check: Unsigned: a policy that nobody signed may be anybody's
	if f.Annotations[AnnotationSignature] == "" || f.Annotations[AnnotationCertificate] == "" {
		return decision.Errorf(decision.Unsigned, "the policy has no signature")
	}
	_, has := f.Annotations[AnnotationContent]
	// check: SignatureMalformed: embedded content would be verified in place of the policy that is read
	if has {
		return decision.Errorf(decision.SignatureMalformed, "a policy may not carry %s", AnnotationContent)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(f.Annotations[AnnotationSignature])
	// check: SignatureMalformed: a second spelling of the same signature
	if err != nil || base64.StdEncoding.EncodeToString(signature) != f.Annotations[AnnotationSignature] {
		return decision.Errorf(decision.SignatureMalformed, "the signature is not base64")
	}
	key, err := certified(f.Annotations[AnnotationCertificate])
	if err != nil {
		return err
	}
	// check: SignerUnknown: anyone can make a key and a certificate
	if !key.Equal(root) {
		return decision.Errorf(decision.SignerUnknown, "signed by another key than this root")
	}
	digest, err := f.Policy.Digest()
	if err != nil {
		return err
	}
	message := sha256.Sum256([]byte(digest))
	// check: Tampered: only the very policy that the root signed
	if !ecdsa.VerifyASN1(key, message[:], signature) {
		return decision.Errorf(decision.Tampered, "the signature is not of this policy")
	}
	return nil
}

// certified gives the key of the certificate: one PEM block, self-signed, P-256.
func certified(annotation string) (*ecdsa.PublicKey, error) {
	bad := decision.Errorf(decision.SignatureMalformed, "the certificate is not one PEM block of an X.509 certificate")
	text, err := base64.StdEncoding.Strict().DecodeString(annotation)
	if err != nil {
		return nil, bad
	}
	block, rest := pem.Decode(text)
	// check: SignatureMalformed: two readers may take different ones of several certificates
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, bad
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, bad
	}
	key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	// check: KeyTypeRefused: the format has one kind of key
	if !ok {
		return nil, decision.Errorf(decision.KeyTypeRefused, "the certificate's key is not ECDSA P-256")
	}
	return key, CheckKey(key)
}

// CheckKey refuses a key that may not sign in this format.
func CheckKey(key *ecdsa.PublicKey) error {
	// check: KeyTypeRefused: the format has one kind of key
	if key == nil || key.Curve != elliptic.P256() {
		return decision.Errorf(decision.KeyTypeRefused, "the key is not ECDSA P-256").Try("use an ECDSA P-256 key")
	}
	return nil
}
