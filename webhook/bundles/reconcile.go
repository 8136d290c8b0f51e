package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// result is what one look at a bundle came to.
type result struct {
	bundle.Outcome
	policy string // digest of the one it was judged by
	// unsigned are objects that carry the bundle's labels and that nobody read: how many, and a few of them.
	unsigned int
	sample   []*facts
	missing  []trustpolicy.Member
	// diverging are the members whose stored spec is another than the signed one.
	diverging []*fragment.Fragment
	// unread says that some objects could not be read, though they may count as they were read last.
	unread bool
	// fault is why the composite is not what is stored.
	fault *decision.Error
	// replaced says that a profile that was not ours stood under the name, and the policy gave the name away.
	replaced bool
	drift    *drift
}

// drift is a foreign change that was undone.
type drift struct {
	at      time.Time
	took    time.Duration
	manager string
	gone    bool
}

// lookAtBundle judges what is stored of a bundle and carries the answer out. Of a namespace that is
// going nothing is kept: it could not end while a composite is made again in it.
func (c *Controller) lookAtBundle(ctx context.Context, s verify.Snapshot, id ID) (again bool, err error) {
	if !c.knows(id) {
		if is, failed := c.concerned(ctx, s, id); !is {
			return failed, nil
		}
	}
	st, err := c.open(ctx, id)
	if err != nil {
		return false, err
	}
	again, err = c.decide(ctx, s, st)
	if errors.Is(err, errOver) || over(err) {
		c.forget(st)
		return false, nil
	}
	return again, err
}

// concerned reports whether a bundle that is not known yet may be one. To open it takes reads, again and
// again as long as somebody's objects bear its label and a certificate that anybody can copy.
func (c *Controller) concerned(ctx context.Context, s verify.Snapshot, id ID) (is, failed bool) {
	if c.index.get(Key{kindBundle, id.Namespace, id.Name}) != nil {
		return true, false
	}
	st := &state{ID: id}
	candidates, failed := c.candidates(ctx, s, st)
	return st.relevant(s, c.Ledger.Slots(id.Namespace, id.Name), candidates), failed
}

// decide is one look: what is stored, what it means, and what is done about it.
func (c *Controller) decide(ctx context.Context, s verify.Snapshot, st *state) (again bool, err error) {
	start, id := c.Now(), st.ID
	marks := c.Ledger.Slots(id.Namespace, id.Name)
	st.ours = st.ours || len(marks) > 0 // they are written right before a composite
	c.claim(st, st.names(marks))
	r := result{policy: s.Policy.Digest}
	candidates, failed := c.candidates(ctx, s, st)
	r.unread = failed
	policy := s.Policy.Bundles[id.Name]
	r.Outcome = bundle.Compose(bundle.Set{
		Namespace: id.Namespace, Name: id.Name, Policy: policy, Candidates: candidates,
		Known: bundle.Known{Last: st.last, Marks: marks, Alarmed: st.alarmed, Reset: resets(s)},
	})
	if !st.relevant(s, marks, candidates) {
		c.forget(st) // labels alone make no bundle
		return failed, nil
	}
	r.unsigned, r.sample = c.index.unsigned(group{fragment.KindContainerProfile, id})
	r.missing, r.diverging = missingOf(policy, candidates), diverging(candidates, r.Composite)
	if err := c.carryOut(ctx, s, st, &r); err != nil {
		fault, ok := errors.AsType[*decision.Error](err)
		if !ok {
			return false, err
		}
		r.fault = fault
	}
	took := c.Now().Sub(start)
	st.took.Store(int64(took))
	c.Metrics.seconds.Observe(took.Seconds())
	again = failed || r.Retry || mayPass(r.fault)
	if r.Verdict == bundle.Dissolved && r.fault == nil {
		return again, c.dissolve(ctx, st)
	}
	return again, c.tell(ctx, st, &r)
}

// mayPass reports whether a fault may go away though nothing that is watched changes.
func mayPass(fault *decision.Error) bool {
	return fault != nil && fault.Reason == decision.BytesChanged
}

// names are those of fragments that concern the bundle whatever their labels say.
func (st *state) names(marks map[ledger.Slot]ledger.SlotMark) map[string]bool {
	names := map[string]bool{}
	for slot := range marks {
		names[slot.Name] = true
	}
	if st.last != nil {
		for _, leaf := range st.last.Leaves {
			names[leaf.Name] = true
		}
	}
	return names
}

// relevant reports whether the bundle is one: it was before, the policy names it, or something in it was
// signed for it by whom the policy knows.
func (st *state) relevant(s verify.Snapshot, marks map[ledger.Slot]ledger.SlotMark, candidates []bundle.Candidate) bool {
	if _, named := s.Policy.Bundles[st.Name]; named || st.report != nil || len(marks) > 0 {
		return true
	}
	for _, candidate := range candidates {
		if f := candidate.Fragment; f != nil && f.Bundle == st.Name {
			return true
		}
	}
	return false
}

// candidates are the objects that may be members: those that have a member's name, and those that carry
// the bundle's labels. What no policy could admit is refused without being read.
func (c *Controller) candidates(ctx context.Context, s verify.Snapshot, st *state) (all []bundle.Candidate, failed bool) {
	var read []*facts
	for name := range st.members {
		f := c.index.get(Key{fragment.KindContainerProfile, st.Namespace, name})
		if f != nil && !f.deleting && f.unsigned == nil && f.Name != st.Name {
			read = append(read, f)
		} else if f != nil && !f.deleting {
			all = append(all, refused(f, standing(f, st)))
		}
	}
	for _, f := range c.index.signed(group{fragment.KindContainerProfile, st.ID}) {
		if f.deleting || st.members[f.Name] {
			continue
		}
		refusal := dropped(s.Policy, f)
		if f.Name == st.Name {
			refusal = ownName(st)
		}
		if refusal != nil {
			all = append(all, refused(f, refusal))
			continue
		}
		read = append(read, f)
	}
	found, failed := c.reader.candidates(ctx, s, read)
	return append(all, found...), failed
}

func refused(f *facts, refusal *decision.Error) bundle.Candidate {
	return bundle.Candidate{Namespace: f.Namespace, Name: f.Name, Refusal: refusal}
}

// standing says why a known member's object need not be read.
func standing(f *facts, st *state) *decision.Error {
	if f.Name == st.Name {
		return ownName(st)
	}
	return f.unsigned
}

// ownName refuses a fragment that has its bundle's name: the composite would take its place.
func ownName(st *state) *decision.Error {
	return decision.Errorf(decision.CompositeForeign, "a fragment cannot have the name of its bundle, which is the composite's").
		Try(fmt.Sprintf("sign it under another name, as %.60s-base", st.Name))
}

// resets tells which versions the policy lets in once.
func resets(s verify.Snapshot) func(ledger.Slot, ledger.SlotMark) bool {
	return func(slot ledger.Slot, mark ledger.SlotMark) bool {
		r, ok := s.Policy.SlotResetOf(slot.String(), mark.Version, mark.Digest)
		return ok && !s.Ledger.ResetUsed(r.ID())
	}
}

// carryOut makes what is stored agree with the answer. The error is a decision.Error where it will not
// go away by trying again at once.
func (c *Controller) carryOut(ctx context.Context, s verify.Snapshot, st *state, r *result) error {
	st.alarmed = r.Alarmed
	if r.Composite == nil {
		return c.withdraw(ctx, st, r)
	}
	want, err := compositeOf(st.ID, r.Composite)
	if err != nil {
		return err
	}
	if r.Verdict == bundle.Refused && st.want != nil && st.want.root == want.root {
		want = st.want
	}
	current := c.current(st)
	var stored *unstructured.Unstructured
	if !current {
		if stored, err = c.composites.stored(ctx, st.ID); err != nil {
			return fmt.Errorf("reading the composite: %w", err)
		}
		if r.replaced, err = mayWrite(s, st, stored); err != nil {
			return err
		}
	}
	if r.Verdict == bundle.Accepted {
		if err := c.Ledger.RecordSlots(ctx, s, r.Marks); err != nil {
			return fmt.Errorf("recording versions: %w", err)
		}
	}
	changed := st.want == nil || want.digest != st.want.digest || want.root != st.want.root
	if current && !changed {
		st.last = r.Composite
		return nil
	}
	if current {
		if stored, err = c.composites.stored(ctx, st.ID); err != nil {
			return fmt.Errorf("reading the composite: %w", err)
		}
	}
	return c.store(ctx, st, r, want, stored)
}

// store publishes a composite, and notes what it undid by that.
func (c *Controller) store(ctx context.Context, st *state, r *result, want *composite, stored *unstructured.Unstructured) error {
	if stored == nil {
		if err := c.living(ctx, st.Namespace); err != nil {
			return err
		}
	}
	if err := c.keepManifest(ctx, st, want); err != nil {
		return err
	}
	foreign := st.lost || st.want != nil && (stored == nil || len(st.want.differs(stored)) > 0)
	now, wrote, err := c.composites.publish(ctx, want, stored)
	if err != nil {
		return err
	}
	seen := &at{string(now.GetUID()), now.GetResourceVersion()}
	st.stored.Store(seen)
	st.published = seen
	since := st.driftSeen.Swap(0)
	if foreign && wrote {
		at := c.Now()
		r.drift = &drift{at: at, gone: stored == nil}
		if since != 0 {
			r.drift.took = at.Sub(time.Unix(0, since))
		}
		if stored != nil {
			r.drift.manager = writer(stored)
		}
		c.Metrics.drift(r.drift.took)
	}
	st.last, st.want, st.ours, st.lost = r.Composite, want, true, false
	return nil
}

// current reports whether what is stored is what we stored last, by the versions that the watch saw.
func (c *Controller) current(st *state) bool {
	if st.inspect.Swap(false) {
		st.published = nil
	}
	return st.published != nil
}

// mayWrite says whether a profile that stands under the bundle's name may be written over, and whether
// it was somebody else's. The name is the bundle's once a composite was stored there, or where the roots
// say so by naming the bundle in the policy.
func mayWrite(s verify.Snapshot, st *state, stored *unstructured.Unstructured) (replaced bool, err error) {
	if stored == nil || st.ours || stored.GetAnnotations()[AnnotationRoot] != "" {
		return false, nil
	}
	_, named := s.Policy.Bundles[st.Name]
	// check: CompositeForeign: whoever gets a fragment signed must not take away a profile that somebody wrote for other pods
	if !named {
		return false, decision.Errorf(decision.CompositeForeign, "a ContainerProfile of this name was there before the bundle, and is not written over").
			Try("delete or rename it, or name the bundle under bundles in the trust policy, which gives it the name")
	}
	return true, nil
}

// withdraw takes a composite away that nothing vouches for any more. As long as something could not be
// read it waits.
func (c *Controller) withdraw(ctx context.Context, st *state, r *result) error {
	st.last, st.want, st.published = nil, nil, nil
	if r.Retry || !st.ours {
		return nil
	}
	stored, err := c.composites.stored(ctx, st.ID)
	if err != nil {
		return fmt.Errorf("reading the composite: %w", err)
	}
	if stored == nil {
		return nil
	}
	if err := c.composites.remove(ctx, stored); err != nil {
		return fmt.Errorf("removing the composite: %w", err)
	}
	c.Log.Warn("a composite that nothing vouches for was removed", "namespace", st.Namespace, "bundle", st.Name)
	return nil
}

// missingOf are the members that the policy requires and that are not there as such.
func missingOf(policy trustpolicy.Bundle, candidates []bundle.Candidate) []trustpolicy.Member {
	there := map[trustpolicy.Member]bool{}
	for _, candidate := range candidates {
		if candidate.Refusal == nil && candidate.Fragment != nil {
			there[trustpolicy.Member{Class: candidate.Fragment.Class, Name: candidate.Fragment.Name}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(policy.Required), func(m trustpolicy.Member) bool { return there[m] })
}

// diverging are the members of the composite whose stored spec is another than the signed one.
func diverging(candidates []bundle.Candidate, c *bundle.Composite) []*fragment.Fragment {
	if c == nil {
		return nil
	}
	members := map[string]bool{}
	for _, leaf := range c.Leaves {
		members[leaf.Name] = true
	}
	var all []*fragment.Fragment
	for _, candidate := range candidates {
		if f := candidate.Fragment; f != nil && len(f.Diverges) > 0 && members[f.Name] {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *fragment.Fragment) int { return strings.Compare(a.Name, b.Name) })
	return all
}
