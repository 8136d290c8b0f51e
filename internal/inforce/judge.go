package inforce

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// verdict is what an offer comes to.
type verdict struct {
	d decision.Decision
	// policy is set when the offer may come into force; expired when it is refused for no other
	// cause than that it has expired.
	policy, expired *trustpolicy.Policy
	// linked says that the offer's chain leads from the pinned anchor to this reader's.
	linked bool
	// forked says that the roots signed two documents of one root version.
	forked bool
}

// Judge says what Offer would make of an object, and changes nothing.
func (k *Keeper) Judge(t *object.TrustPolicy, now time.Time) decision.Decision {
	if err := k.unsettled(); err != nil {
		return decision.From(err).Denied(t.Kind, t.Name)
	}
	return k.judge(t, now).d
}

func (k *Keeper) unsettled() error {
	// check: SnapshotUnavailable: before the stored policy and the ledger are read, an older policy would look like the first
	if !k.settled {
		return decision.Errorf(decision.SnapshotUnavailable, "the stored trust policy and the ledger have not been read yet").
			Try("try again in a few seconds")
	}
	return nil
}

func (k *Keeper) judge(t *object.TrustPolicy, now time.Time) (v verdict) {
	refuse := func(err error) verdict {
		v.d = decision.From(err).Denied(t.Kind, t.Name)
		v.policy, v.expired = nil, nil
		return v
	}
	v.policy, v.d = verify.TrustPolicy(k.anchor.Anchor, nil, t, now)
	p := v.policy
	if !v.d.Allowed() {
		if v.expired = verify.Floor(k.anchor.Anchor, t, v.d); v.expired == nil {
			return v
		}
		p = v.expired
	}
	if err := k.leads(t, now); err != nil {
		return refuse(err)
	}
	v.linked = true
	if err := k.follows(p); err != nil {
		// The roots signed it: what forks here is their word, not the courier's.
		v.forked = decision.From(err).Reason == decision.RootFork
		return refuse(err)
	}
	return v
}

// leads wants the anchor to be the pinned one, or linked to it by the policy's chain, whichever of
// the two is older.
func (k *Keeper) leads(t *object.TrustPolicy, now time.Time) error {
	if k.linked {
		return nil
	}
	chain := t.Signed().Chain
	err := k.pin.CheckAnchor(k.anchor.Text, chain, k.anchor.ClusterID, now)
	if err == nil {
		return nil
	}
	// check: AnchorChanged: whoever may replace the anchor must not be able to bring roots of their own
	if k.pin.Pinned(k.anchor.Text).CheckAnchor(k.pin.Roots, chain, k.anchor.ClusterID, now) != nil {
		return err
	}
	return nil
}

// follows wants a policy that may come after each that is known: in force, offered elsewhere, or
// remembered by the cluster.
func (k *Keeper) follows(p *trustpolicy.Policy) error {
	if err := p.Supersedes(k.current); err != nil {
		return err
	}
	if k.current != nil && p.Digest == k.current.Digest {
		return nil // it was let in, and is offered again
	}
	// check: PolicyRollback,PolicyEquivocation,SerialJump: a file, or an object, that is older than what another source held before it expired
	if err := p.Supersedes(k.newest); err != nil {
		return err
	}
	return k.remembered.Check(p)
}
