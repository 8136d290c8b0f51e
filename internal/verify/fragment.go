package verify

import (
	"cmp"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Fragment judges what was signed of a ContainerProfile, of Rules, or of an object of the two
// experimental kinds: by whom, for which class, and as which version. The stored object beside
// the signed content is display; that it differs is for Admission to refuse.
//
// The fragment is nil where the signature does not hold; where the policy refuses it, it is there.
func Fragment(s Snapshot, o *fragment.Object) (*fragment.Fragment, decision.Decision) {
	return s.fragment(o, nil)
}

// fragment is Fragment of a version that takes the place of old, where there is one.
func (s Snapshot) fragment(o, old *fragment.Object) (*fragment.Fragment, decision.Decision) {
	if err := s.usable(); err != nil {
		return nil, decision.From(err).Denied(o.Kind, o.Name)
	}
	f, err := fragment.Verify(o)
	if err != nil {
		e, again := decision.From(err), "sign it again: "
		if e.Reason == decision.Unsigned {
			again = "sign it: "
		}
		return nil, e.Try(cmp.Or(e.Hint, again+signFragment)).Denied(o.Kind, o.Name)
	}
	if err := s.permitted(f); err != nil {
		return f, decision.From(err).Denied(o.Kind, o.Name)
	}
	if err := s.slotFollows(ledger.SlotOf(o.Namespace, f), f, s.replacedSlot(f, old)); err != nil {
		return f, decision.From(err).At(labelPath(fragment.LabelVersion)).Denied(o.Kind, o.Name)
	}
	d := decision.Admit(o.Kind, o.Name, what(f))
	d.Keys = []string{f.Signer}
	return f, d
}

// Permitted judges a fragment that was read before, and cannot be read now, by the policy in force: by
// all but its version. It is nil where the policy allows it.
func Permitted(s Snapshot, f *fragment.Fragment) *decision.Error {
	// check: PolicyUnavailable: without a policy that counts, nothing that was allowed once is allowed still
	if err := s.usable(); err != nil {
		return decision.From(err)
	}
	if err := s.permitted(f); err != nil {
		return decision.From(err)
	}
	return nil
}

const signFragment = "hostwarrant sign -i FILE --key KEY --class CLASS"

func labelPath(name string) string { return "metadata.labels[" + name + "]" }

func what(f *fragment.Fragment) string {
	bundle := "of no bundle"
	if f.Bundle != "" {
		bundle = fmt.Sprintf("of the bundle %.63s", f.Bundle)
	}
	return fmt.Sprintf("class %.63s %s, version %d", f.Class, bundle, f.Version)
}

// replacedSlot gives the version that an update takes the place of, if that is vouched for and
// counts in the same slot: what was admitted in mode warn must not block honest versions.
func (s Snapshot) replacedSlot(f *fragment.Fragment, old *fragment.Object) *ledger.SlotMark {
	if old == nil {
		return nil
	}
	was, d := s.fragment(old, nil)
	if !d.Allowed() || ledger.SlotOf(old.Namespace, was) != ledger.SlotOf(old.Namespace, f) {
		return nil
	}
	m := ledger.SlotMarkOf(was)
	return &m
}

// slotFollows judges the version of a fragment by what is remembered of its slot, and by what
// it takes the place of.
func (s Snapshot) slotFollows(slot ledger.Slot, f *fragment.Fragment, replaced *ledger.SlotMark) error {
	v := ledger.SlotMarkOf(f)
	if s.slotReset(slot, v) {
		return nil
	}
	if replaced != nil {
		if err := replaced.Next(v); err != nil {
			return err
		}
	}
	if s.Ledger == nil {
		return nil
	}
	if m, known := s.Ledger.Slot(slot); known {
		return m.Next(v)
	}
	return ledger.FirstSlot(v)
}

// slotReset reports whether the policy lets exactly this version into the slot, and did not yet.
func (s Snapshot) slotReset(slot ledger.Slot, v ledger.SlotMark) bool {
	r, ok := s.Policy.SlotResetOf(slot.String(), v.Version, v.Digest)
	// check: VersionRollback: a reset that was used must not let the old version in for ever
	if ok && s.Ledger != nil && s.Ledger.ResetUsed(r.ID()) {
		return false
	}
	return ok
}
