package signature

import (
	"crypto/ecdsa"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// ByRoot reports whether the annotations of a file hold the root's signature of a digest.
// The error carries SignerUnknown, or what Read and Verify do.
func ByRoot(annotations map[string]string, digest string, root *ecdsa.PublicKey) error {
	if err := CheckKey(root); err != nil {
		return err
	}
	s, err := Read(annotations)
	if err != nil {
		return err
	}
	_, embedded := annotations[AnnotationContent]
	// check: SignatureMalformed: embedded content would be verified in place of the file that is read
	if embedded {
		return decision.Errorf(decision.SignatureMalformed, "a signed file may not carry %s", AnnotationContent)
	}
	// check: SignerUnknown: anyone can make a key and a certificate
	if !s.Key.Equal(root) {
		return decision.Errorf(decision.SignerUnknown, "signed by another key than this root")
	}
	return s.Verify(digest)
}
