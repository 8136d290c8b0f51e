package verify

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// maxTrustedSigners is the maxItems of SSHHost.spec.trustedSigners.
const maxTrustedSigners = 16

// FillSigners says what the mutating webhook puts into an empty trustedSigners of
// a Verified SSHHost; the offline verdict fills in the same. Where such a list
// stays empty, why says so. Nothing relies on it: Host judges what is there.
func FillSigners(s Snapshot, h *object.Host) (signers []string, why string) {
	if h.ExecMode != object.ExecVerified || len(h.TrustedSigners) > 0 {
		return nil, ""
	}
	if s.usable() != nil {
		return nil, "no trust policy is in force"
	}
	signers = s.Policy.FillSigners(s.Now)
	if len(signers) == 0 {
		return nil, "the trust policy lists no plain key that is in its term"
	}
	if len(signers) > maxTrustedSigners {
		return nil, fmt.Sprintf("the trust policy lists %d keys, and the field holds %d; choose some", len(signers), maxTrustedSigners)
	}
	return signers, ""
}
