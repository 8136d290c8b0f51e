package policyfile

import (
	"crypto/ecdsa"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// Verify reports whether the root signed the policy. The error carries SignerUnknown or
// what signature.Read and its Verify carry.
func (f *File) Verify(root *ecdsa.PublicKey) error {
	if err := signature.CheckKey(root); err != nil {
		return err
	}
	s, err := signature.Read(f.Annotations)
	if err != nil {
		return err
	}
	_, has := f.Annotations[signature.AnnotationContent]
	// check: SignatureMalformed: embedded content would be verified in place of the policy that is read
	if has {
		return decision.Errorf(decision.SignatureMalformed, "a policy may not carry %s", signature.AnnotationContent)
	}
	// check: SignerUnknown: anyone can make a key and a certificate
	if !s.Key.Equal(root) {
		return decision.Errorf(decision.SignerUnknown, "signed by another key than this root")
	}
	digest, err := f.Policy.Digest()
	if err != nil {
		return err
	}
	return s.Verify(digest)
}
