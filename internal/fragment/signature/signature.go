package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"encoding/asn1"
	"math/big"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Signature is what the annotations of an object or file hold.
type Signature struct {
	Key *ecdsa.PublicKey
	// Signer is the Fingerprint of Key.
	Signer string

	der []byte
}

var timestamp = regexp.MustCompile(`^-?[0-9]{1,18}$`)

// Read takes the signature out of annotations. The error carries Unsigned,
// SignatureMalformed, SignatureInvalid, KeyTypeRefused or Tampered.
func Read(annotations map[string]string) (*Signature, error) {
	// check: Unsigned: what nobody signed may be anybody's
	if annotations[AnnotationSignature] == "" {
		return nil, decision.Errorf(decision.Unsigned, "has no signature")
	}
	// check: Tampered: a signature whose certificate was taken away belongs to nobody
	if annotations[AnnotationCertificate] == "" {
		return nil, decision.Errorf(decision.Tampered, "the signature has no certificate beside it")
	}
	der, ok := Decode(annotations[AnnotationSignature])
	// check: SignatureMalformed: a second spelling of the same signature
	if !ok {
		return nil, decision.Errorf(decision.SignatureMalformed, "the signature is not base64")
	}
	at, dated := annotations[AnnotationTimestamp]
	// check: SignatureMalformed: the format's own reader takes no such annotations
	if dated && !timestamp.MatchString(at) {
		return nil, decision.Errorf(decision.SignatureMalformed, "the timestamp is not a number")
	}
	key, err := certified(annotations[AnnotationCertificate])
	if err != nil {
		return nil, err
	}
	signer, err := Fingerprint(key)
	return &Signature{Key: key, Signer: signer, der: der}, err
}

// Verify reports whether the signature is that of the digest, 64 hex digits. The error carries Tampered.
func (s *Signature) Verify(digest string) error {
	tampered := decision.Errorf(decision.Tampered, "the signature is not of this content")
	rest, err := asn1.Unmarshal(s.der, &struct{ R, S *big.Int }{})
	// check: Tampered: sigstore's reader takes r and s side by side as well, a second spelling of the same signature
	if err != nil || len(rest) > 0 {
		return tampered
	}
	verifier, err := signature.LoadECDSAVerifier(s.Key, crypto.SHA256)
	if err != nil {
		return decision.From(err)
	}
	// check: Tampered: only what the key signed
	if verifier.VerifySignature(bytes.NewReader(s.der), strings.NewReader(digest)) != nil {
		return tampered
	}
	return nil
}
