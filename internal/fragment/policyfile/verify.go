package policyfile

import (
	"crypto/ecdsa"

	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// Verify reports whether the root signed the policy. The error carries what signature.ByRoot does.
func (f *File) Verify(root *ecdsa.PublicKey) error {
	digest, err := f.Policy.Digest()
	if err != nil {
		return err
	}
	return signature.ByRoot(f.Annotations, digest, root)
}
