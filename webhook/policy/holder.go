package policy

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Observer is told what became of offers.
type Observer interface {
	PolicyLoaded(p *trustpolicy.Policy)
	PolicyRefused(reason decision.Reason)
}

// Refusal is the last offer that was refused and not followed by a good one.
type Refusal struct {
	At      time.Time       `json:"at"`
	Source  string          `json:"source"`
	Reason  decision.Reason `json:"reason"`
	Message string          `json:"message"`
}

// offer is the newest that a source handed in, kept to be tried again: a policy that is not valid
// yet becomes so without anybody writing it again.
type offer struct {
	raw  []byte
	seen [sha256.Size]byte
	// refused is the reason of the refusal that was reported for these bytes.
	refused decision.Reason
}

// Holder keeps the policy in force. Make one with New.
type Holder struct {
	anchor   Anchor
	observer Observer
	log      *slog.Logger

	current atomic.Pointer[trustpolicy.Policy]
	synced  atomic.Bool

	mu      sync.Mutex // guards what is below, and that offers are taken one after the other
	offers  map[string]*offer
	refusal *Refusal
}

// New returns a Holder that has no policy yet.
func New(anchor Anchor, observer Observer, log *slog.Logger) *Holder {
	return &Holder{anchor: anchor, observer: observer, log: log, offers: map[string]*offer{}}
}

// Offer hands in the JSON of a TrustPolicy object from a source, and returns what was made of it.
func (h *Holder) Offer(source string, raw []byte, now time.Time) decision.Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := sha256.Sum256(raw)
	if known, ok := h.offers[source]; !ok || known.seen != sum {
		h.offers[source] = &offer{raw: raw, seen: sum}
	}
	return h.try(source, now)
}

// Retry tries the newest offer of each source again.
func (h *Holder) Retry(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for source := range h.offers {
		h.try(source, now)
	}
}

// Synced says that every source has been read once: from now on "no policy" means that there is none.
func (h *Holder) Synced() { h.synced.Store(true) }

// try verifies the newest offer of a source and puts it in force.
func (h *Holder) try(source string, now time.Time) decision.Decision {
	o := h.offers[source]
	current := h.current.Load()
	next, d := h.verify(current, o.raw, now)
	if !d.Allowed() {
		h.refuse(source, o, d, now)
		h.holdExpired(o.raw, d)
		return d
	}
	o.refused = ""
	h.refusal = nil
	if current != nil && next.Digest == current.Digest {
		return d
	}
	h.current.Store(next)
	h.observer.PolicyLoaded(next)
	h.log.Info("trust policy in force", "source", source, "version", next.Version, "digest", next.Digest,
		"mode", next.Mode(now), "expires", next.Expires, "signers", len(next.Signers), "notEnforced", next.NotEnforced())
	if gone := removed(current, next); len(gone) > 0 {
		h.log.Warn("the new trust policy takes signers away", "signers", gone)
	}
	return d
}

// holdExpired keeps the policy that was stored when we started and has expired, where there is none
// in force: everything is refused by it, and an older one cannot take its place.
func (h *Holder) holdExpired(raw []byte, refused decision.Decision) {
	if h.current.Load() != nil {
		return
	}
	t, err := object.ParseTrustPolicy(raw)
	if err != nil {
		return
	}
	if p := verify.Floor(h.anchor.Anchor, t, refused); p != nil {
		h.current.Store(p)
		h.observer.PolicyLoaded(p)
	}
}

// refuse reports a refusal once for the same bytes and reason.
func (h *Holder) refuse(source string, o *offer, d decision.Decision, now time.Time) {
	if o.refused == d.Reason {
		return
	}
	o.refused = d.Reason
	h.refusal = &Refusal{At: now, Source: source, Reason: d.Reason, Message: d.Message()}
	h.observer.PolicyRefused(d.Reason)
	h.log.Error("trust policy refused; what is in force stays", "source", source, "message", d.Message())
}

// verify judges the JSON of a TrustPolicy object.
func (h *Holder) verify(current *trustpolicy.Policy, raw []byte, now time.Time) (*trustpolicy.Policy, decision.Decision) {
	t, err := object.ParseTrustPolicy(raw)
	if err != nil {
		return nil, decision.From(err).Denied(object.KindTrustPolicy, object.TrustPolicyName)
	}
	return verify.TrustPolicy(h.anchor.Anchor, current, t, now)
}

// Judge says what Offer would make of an object, and changes nothing.
func (h *Holder) Judge(t *object.TrustPolicy, now time.Time) decision.Decision {
	// check: SnapshotUnavailable: before the stored policy is read, an older one would look like the first
	if !h.synced.Load() {
		return decision.Errorf(decision.SnapshotUnavailable, "the stored trust policy has not been read yet").
			Try("try again in a few seconds").Denied(t.Kind, t.Name)
	}
	_, d := verify.TrustPolicy(h.anchor.Anchor, h.current.Load(), t, now)
	return d
}

// Snapshot is what is trusted at now: nothing before every source has been read once.
func (h *Holder) Snapshot(now time.Time) verify.Snapshot {
	// check: PolicyUnavailable: a file may hold an older policy than the cluster, which must not decide until that is read
	if !h.synced.Load() {
		return verify.Snapshot{Now: now}
	}
	return verify.Snapshot{Policy: h.current.Load(), ClusterID: h.anchor.ClusterID, Now: now}
}

// Ready says why no decision but a refusal can be made, or nil.
func (h *Holder) Ready(now time.Time) error {
	// check: SnapshotUnavailable: a replica that has not read the stored policy must get no requests
	if !h.synced.Load() {
		return fmt.Errorf("%s: the stored trust policy has not been read yet", decision.SnapshotUnavailable)
	}
	p := h.current.Load()
	if p != nil && !p.Expired(now) {
		return nil
	}
	if p != nil {
		return fmt.Errorf("%s: the trust policy expired at %s", decision.PolicyExpired, p.Expires.Format(time.RFC3339))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusal != nil {
		return fmt.Errorf("%s: no verified trust policy; last refusal: %s", decision.PolicyUnavailable, h.refusal.Message)
	}
	return fmt.Errorf("%s: no trust policy was found", decision.PolicyUnavailable)
}

// removed names the signers of the old policy whose key the new one does not list.
func removed(old, next *trustpolicy.Policy) []string {
	if old == nil {
		return nil
	}
	var gone []string
	for _, s := range old.Signers {
		if len(next.SignersOf(s.Key)) == 0 || next.Revoked(s.Key) && !old.Revoked(s.Key) {
			gone = append(gone, s.Name)
		}
	}
	return gone
}
