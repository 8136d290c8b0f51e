package policy

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Observer is told what became of offers, and of the anchor.
type Observer interface {
	PolicyLoaded(p *trustpolicy.Policy)
	PolicyRefused(reason decision.Reason)
	AnchorDiffers(differs bool)
}

// Holder shares the policy in force among those who decide by it. Make one with New.
type Holder struct {
	anchor   Anchor
	observer Observer
	log      *slog.Logger

	mu      sync.Mutex // guards what is below
	keeper  *inforce.Keeper
	differs bool // the anchor, from the ledger's
}

// New returns a Holder that has no policy yet.
func New(anchor Anchor, observer Observer, log *slog.Logger) *Holder {
	return &Holder{anchor: anchor, observer: observer, log: log, keeper: inforce.New(anchor)}
}

// Identify tells the UID of the namespace kube-system, before Settle.
func (h *Holder) Identify(uid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keeper.Identify(uid)
}

// Offer hands in the JSON of a TrustPolicy object from a source, and returns what was made of it.
func (h *Holder) Offer(source string, raw []byte, now time.Time) decision.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, e := h.keeper.Offer(source, raw, now)
	h.report(e, now)
	return d
}

// Remember takes what the ledger says of policies and of the anchor.
func (h *Holder) Remember(r ledger.Policy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keeper.Remember(r)
	if differs := h.keeper.AnchorDiffers(); differs != h.differs {
		h.differs = differs
		h.observer.AnchorDiffers(differs)
		h.log.Error("the anchor and the one in the ledger differ, or do no more", "differ", differs,
			"anchor", h.anchor.Digest, "ledger", r.AnchorDigest, "clusterID", h.anchor.ClusterID)
	}
}

// Settle says that the ledger and every source have been read once: from now on offers are judged,
// and "no policy" means that there is none.
func (h *Holder) Settle(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.keeper.Settle(now) {
		h.report(e, now)
	}
}

// Retry tries the newest offer of each source again.
func (h *Holder) Retry(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.keeper.Retry(now) {
		h.report(e, now)
	}
}

// report says loudly what became of an offer.
func (h *Holder) report(e inforce.Event, now time.Time) {
	if r := e.Refused; r != nil {
		h.observer.PolicyRefused(r.Reason)
		h.log.Error("trust policy refused; what is in force stays", "source", r.Source, "message", r.Message, "offered", r.Offered, "inForce", r.InForce)
	}
	p := e.Loaded
	if p == nil {
		return
	}
	h.observer.PolicyLoaded(p)
	if p.Expired(now) {
		return
	}
	h.log.Info("trust policy in force", "source", e.Source, "version", p.Version, "digest", p.Digest,
		"mode", p.Mode(now), "expires", p.Expires, "signers", len(p.Signers))
	if len(e.Reductions) > 0 {
		h.log.Warn("the new trust policy lets less through", "version", p.Version, "number", len(e.Reductions), "reductions", firstOf(e.Reductions))
	}
}

// maxReductions bounds how many reductions one log line lists.
const maxReductions = 64

func firstOf(all []string) []string { return all[:min(len(all), maxReductions)] }

// Judge says what Offer would make of an object, and changes nothing.
func (h *Holder) Judge(t *object.TrustPolicy, now time.Time) decision.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper.Judge(t, now)
}

// Snapshot is what is trusted at now. The error says why nothing may be decided.
func (h *Holder) Snapshot(now time.Time) (verify.Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := verify.Snapshot{Policy: h.keeper.Current(), ClusterID: h.anchor.ClusterID, Now: now}
	return s, h.keeper.Fault()
}

// Ready says why no decision but a refusal can be made, or nil.
func (h *Holder) Ready(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper.Ready(now)
}
