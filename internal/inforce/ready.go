package inforce

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Fault says why nothing may be decided, whatever policy there is; nil where nothing stands against it.
func (k *Keeper) Fault() error {
	if err := k.unsettled(); err != nil {
		return err
	}
	// check: AnchorChanged: a policy by roots that somebody brought along must decide nothing
	if !k.linked {
		return decision.Errorf(decision.AnchorChanged, "the anchor is %.19s, pinned is %.19s, and no root chain leads from one to the other", k.anchor.Digest, k.pin.AnchorDigest).
			Try("restore the anchor, or apply a trust policy whose spec.rootChain links the two")
	}
	for _, o := range k.offers {
		// check: RootFork: of two documents of one root version, nobody knows which is the roots' own
		if o.forked {
			return decision.Errorf(decision.RootFork, "the roots signed two documents of one root version").
				Try("find out who signed it; then apply the trust policy of the true roots")
		}
	}
	return nil
}

// Ready says why no decision but a refusal can be made, or nil.
func (k *Keeper) Ready(now time.Time) error {
	if err := k.Fault(); err != nil {
		return err
	}
	if k.current != nil && !k.current.Expired(now) {
		return nil
	}
	if k.current != nil {
		return decision.Errorf(decision.PolicyExpired, "the trust policy expired at %s", k.current.Expires.Format(time.RFC3339))
	}
	if k.refusal != nil {
		return decision.Errorf(decision.PolicyUnavailable, "no verified trust policy; last refusal: %s", k.refusal.Message)
	}
	return decision.Errorf(decision.PolicyUnavailable, "no trust policy was found")
}
