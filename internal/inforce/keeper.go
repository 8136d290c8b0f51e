package inforce

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/policydiff"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Keeper keeps the policy in force. It is not safe for concurrent use. Make one with New.
type Keeper struct {
	anchor Anchor
	// remembered is what the cluster's ledger says; its zero value says nothing.
	remembered ledger.Policy
	// pin is what it said when this reader started: what anchor the cluster had at first.
	pin     ledger.Policy
	linked  bool // the anchor is the pinned one, or a chain leads from the one to the other
	settled bool

	// current is in force or, once it expired, held so that no older one comes back.
	current *trustpolicy.Policy
	// newest is the newest that the roots signed for this cluster and that only expiry kept out.
	newest *trustpolicy.Policy

	offers   map[string]*offer
	reported []report
	refusal  *Refusal
}

// offer is the newest that a source handed in. It is kept to be tried again: a policy that is not
// valid yet becomes so without anybody writing it again.
type offer struct {
	raw    []byte
	digest string // of the document; "" where it cannot be read
	seen   [sha256.Size]byte
	forked bool
}

// New returns a Keeper that has no policy.
func New(anchor Anchor) *Keeper { return &Keeper{anchor: anchor, offers: map[string]*offer{}} }

// Event is what became of an offer.
type Event struct {
	Source string
	// Loaded is a policy that is now in force (or held, where Refused says that it expired), and
	// Previous the one before, nil at first.
	Loaded, Previous *trustpolicy.Policy
	// Reductions say what Loaded lets less through than Previous.
	Reductions []string
	// Refused is a refusal that was not reported before.
	Refused *Refusal
}

// Identify tells the UID of the cluster's namespace kube-system, before anything settles.
func (k *Keeper) Identify(uid string) { k.anchor.ClusterUID = uid }

// Remember takes what the ledger says of policies.
func (k *Keeper) Remember(r ledger.Policy) { k.remembered = r }

// Settle says that the ledger and every source were read once: from now on there is either a policy
// or none, and offers are judged. Before, an older policy could look like the first.
func (k *Keeper) Settle(now time.Time) []Event {
	if k.settled {
		return nil
	}
	k.pin = k.remembered
	k.linked = k.pin.AnchorDigest == "" || k.pin.AnchorDigest == k.anchor.Digest
	events := k.all(now)
	k.settled = true
	return events
}

// Offer hands in the JSON of a TrustPolicy object. It is judged at once, or when everything settles.
func (k *Keeper) Offer(source string, raw []byte, now time.Time) (decision.Decision, Event) {
	o := newOffer(raw)
	if known, ok := k.offers[source]; !ok || known.seen != o.seen {
		k.offers[source] = o
	}
	if err := k.unsettled(); err != nil {
		return decision.From(err).Denied(object.KindTrustPolicy, object.TrustPolicyName), Event{Source: source}
	}
	return k.try(source, now)
}

// Retry judges the newest offer of each source again, and gives what is new.
func (k *Keeper) Retry(now time.Time) []Event {
	if !k.settled {
		return nil
	}
	return k.all(now)
}

func (k *Keeper) all(now time.Time) []Event {
	var events []Event
	for _, source := range slices.Sorted(maps.Keys(k.offers)) {
		if _, e := k.try(source, now); e.Loaded != nil || e.Refused != nil {
			events = append(events, e)
		}
	}
	return events
}

// newOffer keeps what was signed; where that cannot be read, all of it.
func newOffer(raw []byte) *offer {
	o := &offer{raw: raw, seen: sha256.Sum256(raw)}
	if t, err := object.ParseTrustPolicy(raw); err == nil {
		o.digest = trustpolicy.Digest([]byte(t.Document))
		o.seen = contentOf(t)
	}
	return o
}

// contentOf identifies what a TrustPolicy holds, whatever else is written beside it.
func contentOf(t *object.TrustPolicy) [sha256.Size]byte {
	h := sha256.New()
	part := func(text []byte) {
		sum := sha256.Sum256(text)
		h.Write(sum[:])
	}
	signed := t.Signed()
	part([]byte(t.Name))
	part(signed.Document)
	part([]byte(strconv.Itoa(len(signed.Signatures))))
	for _, s := range signed.Signatures {
		part([]byte(s))
	}
	for _, link := range signed.Chain {
		part(link.Text)
		part([]byte(strconv.Itoa(len(link.Signatures))))
		for _, s := range link.Signatures {
			part([]byte(s))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// try judges the newest offer of a source and puts it in force.
func (k *Keeper) try(source string, now time.Time) (decision.Decision, Event) {
	o, e := k.offers[source], Event{Source: source, Previous: k.current}
	t, err := object.ParseTrustPolicy(o.raw)
	if err != nil {
		d := decision.From(err).Denied(object.KindTrustPolicy, object.TrustPolicyName)
		e.Refused = k.refuse(source, o, d, now)
		return d, e
	}
	v := k.judge(t, now)
	o.forked = v.forked
	if v.linked {
		k.linked = true
	}
	if !v.d.Allowed() {
		e.Refused = k.refuse(source, o, v.d, now)
		k.hold(v.expired, &e)
		return v.d, e
	}
	if k.current == nil || k.current.Digest != v.policy.Digest {
		e.Loaded = v.policy
	}
	if e.Loaded != nil || k.refusal != nil && k.refusal.Source == source {
		k.refusal = nil
	}
	k.current = v.policy
	k.raise(v.policy)
	if e.Loaded != nil && e.Previous != nil {
		e.Reductions = policydiff.Reductions(e.Previous, e.Loaded)
	}
	return v.d, e
}

// hold keeps a newer policy that expired. At the start, and where nothing is in force, it takes the
// place of an older one: everything is refused by it. Later what is in force stays, and only what is
// older than the newest cannot come any more.
func (k *Keeper) hold(expired *trustpolicy.Policy, e *Event) {
	if expired == nil {
		return
	}
	k.raise(expired)
	if k.current == nil || !k.settled && expired.Version > k.current.Version {
		k.current, e.Loaded = expired, expired
	}
}

func (k *Keeper) raise(p *trustpolicy.Policy) {
	if k.newest == nil || p.Version > k.newest.Version {
		k.newest = p
	}
}

// Current is the policy in force, or held since it expired; nil where there is none.
func (k *Keeper) Current() *trustpolicy.Policy { return k.current }

// Remembered is what the ledger says, as far as it was read.
func (k *Keeper) Remembered() ledger.Policy { return k.remembered }

// AnchorDiffers says that the cluster's ledger pins another anchor than this reader has: another
// program of the product, or an earlier start, trusts other roots.
func (k *Keeper) AnchorDiffers() bool {
	return k.remembered.AnchorDigest != "" && k.remembered.AnchorDigest != k.anchor.Digest
}
