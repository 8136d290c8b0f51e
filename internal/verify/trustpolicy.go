package verify

import (
	"fmt"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// TrustPolicy judges a TrustPolicy object against the anchor and the policy in
// force (nil at the first start), and returns the policy it holds when it may
// take effect.
func TrustPolicy(a Anchor, current *trustpolicy.Policy, t *object.TrustPolicy, now time.Time) (*trustpolicy.Policy, decision.Decision) {
	p, err := judgePolicy(a, current, t, now)
	if err != nil {
		return nil, decision.From(err).Denied(t.Kind, t.Name)
	}
	return p, decision.Admit(t.Kind, t.Name, fmt.Sprintf("version %d, %s", p.Version, p.Digest))
}

func judgePolicy(a Anchor, current *trustpolicy.Policy, t *object.TrustPolicy, now time.Time) (*trustpolicy.Policy, error) {
	// check: PolicyMalformed: one place to look; an object under another name would never be read
	if t.Name != object.TrustPolicyName {
		return nil, decision.Errorf(decision.PolicyMalformed, "the trust policy must be named %q", object.TrustPolicyName).At("metadata.name")
	}
	p, err := trustpolicy.Verify(t.Signed(), a.Roots, a.ClusterID, now)
	if err != nil {
		return nil, err
	}
	if err := p.Supersedes(current); err != nil {
		return nil, err
	}
	return p, nil
}

// Floor returns the policy of a stored object that TrustPolicy refused for no
// other cause than that it has expired, and nil otherwise. A reader that has
// just started holds it: it grants nothing, but an older policy that has not
// expired cannot take its place.
func Floor(a Anchor, t *object.TrustPolicy, refused decision.Decision) *trustpolicy.Policy {
	// check: PolicyExpired: a policy that fails for another cause says nothing
	if refused.Reason != decision.PolicyExpired {
		return nil
	}
	p, err := trustpolicy.Authenticate(t.Signed(), a.Roots)
	if err != nil {
		return nil
	}
	return p
}
