package verify

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Snapshot is what is trusted at one moment. Its zero value trusts nothing.
type Snapshot struct {
	// Policy is the verified policy in force, nil when there is none.
	Policy *trustpolicy.Policy
	// ClusterID is the reader's own cluster, as its anchor names it.
	ClusterID string
	Now       time.Time
}

// usable refuses to judge by a policy that is missing or has expired.
func (s Snapshot) usable() error {
	// check: PolicyUnavailable: no policy must not mean no rules
	if s.Policy == nil {
		return decision.Errorf(decision.PolicyUnavailable, "no verified trust policy is loaded").
			Try("kubectl get trustpolicy cluster; hostwarrant policy verify FILE --root ROOTS")
	}
	// check: PolicyExpired: a policy whose updates are withheld must stop granting
	if s.Policy.Expired(s.Now) {
		return decision.Errorf(decision.PolicyExpired, "the trust policy expired at %s", s.Policy.Expires.Format(time.RFC3339)).
			Try("apply a trust policy with a higher version and a later expires")
	}
	return nil
}
