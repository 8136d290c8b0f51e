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
		return nil, decision.Errorf(decision.PolicyMalformed, "the trust policy must be named %q", object.TrustPolicyName).
			At("metadata.name").Try("set metadata.name, and apply it; the signatures do not cover it")
	}
	p, err := trustpolicy.Verify(t.Signed(), a.Roots, a.ClusterID, now)
	if err != nil {
		return nil, err
	}
	if err := sameUID(a, p); err != nil {
		return nil, err
	}
	if err := p.Supersedes(current); err != nil {
		return nil, err
	}
	return p, nil
}

// sameUID wants a policy that names a UID for the cluster to name this one's.
func sameUID(a Anchor, p *trustpolicy.Policy) error {
	// check: PolicyWrongCluster: a cluster that was made anew under an old name, or one that borrowed it
	if uid := p.Cluster(a.ClusterID).UID; uid != "" && a.ClusterUID != "" && uid != a.ClusterUID {
		return decision.Errorf(decision.PolicyWrongCluster, "the policy is for the cluster with UID %s, this is %.40q", uid, a.ClusterUID).
			At("clusters").Try("kubectl get namespace kube-system -o jsonpath={.metadata.uid}, and sign the policy with that uid")
	}
	return nil
}

// expirySoon is how long before its end a policy is warned about.
const expirySoon = 30 * 24 * time.Hour

// ExpiryWarning says that the policy ends soon, "" where it does not.
func ExpiryWarning(p *trustpolicy.Policy, now time.Time) string {
	if p == nil {
		return ""
	}
	left := p.Expires.Sub(now)
	const renew = "hint: hostwarrant policy renew"
	switch days := int(left / (24 * time.Hour)); {
	case left <= 0:
		return "the trust policy has expired; " + renew
	case left > expirySoon:
		return ""
	case days == 0:
		return "the trust policy expires in less than a day; " + renew
	case days == 1:
		return "the trust policy expires in 1 day; " + renew
	default:
		return fmt.Sprintf("the trust policy expires in %d days; %s", days, renew)
	}
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
	// check: PolicyWrongCluster: the policy of a cluster that borrowed the name would hold back this one's for ever
	if err := sameUID(a, p); err != nil {
		return nil
	}
	return p
}
