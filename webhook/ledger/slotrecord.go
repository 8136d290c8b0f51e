package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Slots are the marks of the ContainerProfiles of one bundle.
func (k *Keeper) Slots(namespace, bundle string) map[ledger.Slot]ledger.SlotMark {
	all := map[ledger.Slot]ledger.SlotMark{}
	for _, l := range k.slots(namespace, bundle) {
		for key, m := range l.Marks {
			class, name, _ := strings.Cut(key, "/")
			slot := ledger.Slot{Namespace: namespace, Bundle: bundle, Class: class, Name: name}
			if known, ok := all[slot]; !strings.Contains(name, "/") && (!ok || known.Version < m.Version) {
				all[slot] = record.SlotMark(m)
			}
		}
	}
	return all
}

// RecordSlots remembers fragments that were seen stored, verify, and are in an accepted set. A mark that
// may not follow the one that is remembered, and that no reset lets in, changes nothing.
func (k *Keeper) RecordSlots(ctx context.Context, s verify.Snapshot, marks map[ledger.Slot]ledger.SlotMark) error {
	for at, of := range byRecord(marks) {
		for len(of) > 0 {
			n := k.recordFor(at, of)
			if err := k.recordIn(ctx, s, at, n, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// place is what a record of slots is named by.
type place struct{ namespace, bundle string }

func byRecord(marks map[ledger.Slot]ledger.SlotMark) map[place]map[ledger.Slot]ledger.SlotMark {
	all := map[place]map[ledger.Slot]ledger.SlotMark{}
	for slot, mark := range marks {
		at := place{slot.Namespace, slot.Bundle}
		if all[at] == nil {
			all[at] = map[ledger.Slot]ledger.SlotMark{}
		}
		all[at][slot] = mark
	}
	return all
}

// recordFor is the number of the first record that has one of the slots, or room for another.
func (k *Keeper) recordFor(at place, of map[ledger.Slot]ledger.SlotMark) int {
	records := k.slots(at.namespace, at.bundle)
	for n, l := range records {
		for slot := range of {
			if _, ok := l.Marks[slot.Key()]; ok {
				return n
			}
		}
	}
	for n, l := range records {
		if len(l.Marks) < ledger.MaxSlots {
			return n
		}
	}
	return len(records)
}

// recordIn writes what belongs into one record, and takes it out of what is left.
func (k *Keeper) recordIn(ctx context.Context, s verify.Snapshot, at place, n int, left map[ledger.Slot]ledger.SlotMark) error {
	var used []string
	var done []ledger.Slot
	err := k.change(ctx, ledger.SlotsName(at.namespace, at.bundle, n), func(known *v1alpha1.Ledger) (*v1alpha1.Ledger, error) {
		next := slotsRecord(known, at, n)
		used, done = nil, nil
		changed := false
		for _, slot := range slices.SortedFunc(maps.Keys(left), bySlot) {
			was, there := next.Spec.Slots.Marks[slot.Key()]
			if !there && k.elsewhere(slot, n) {
				continue
			}
			if !there && len(next.Spec.Slots.Marks) == ledger.MaxSlots {
				continue
			}
			done = append(done, slot)
			mark, reset, ok := k.moved(s, slot, left[slot], was, there)
			if !ok {
				continue
			}
			if reset != "" {
				used = append(used, reset)
			}
			next.Spec.Slots.Marks[slot.Key()], changed = mark, true
		}
		if !changed {
			return nil, nil
		}
		return next, nil
	})
	if err != nil {
		return err
	}
	if len(done) == 0 {
		return fmt.Errorf("recording versions: no record of bundle %.80q has room", at.bundle)
	}
	for _, slot := range done {
		delete(left, slot)
	}
	for _, id := range used {
		k.alarm(ctx, "LedgerReset", fmt.Sprintf("a slot of bundle %.80q in namespace %.63q was lowered by the policy's reset %s", at.bundle, at.namespace, id))
		if err := k.useReset(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func bySlot(a, b ledger.Slot) int { return strings.Compare(a.Key(), b.Key()) }

// elsewhere reports whether another record than n has the slot.
func (k *Keeper) elsewhere(slot ledger.Slot, n int) bool {
	for i, l := range k.slots(slot.Namespace, slot.Bundle) {
		if _, ok := l.Marks[slot.Key()]; ok && i != n {
			return true
		}
	}
	return false
}

// moved is the mark that takes the place of was, and the reset that it needed; not ok where it may not.
func (k *Keeper) moved(s verify.Snapshot, slot ledger.Slot, mark ledger.SlotMark, was v1alpha1.LedgerSlotMark, there bool) (next v1alpha1.LedgerSlotMark, reset string, ok bool) {
	next = v1alpha1.LedgerSlotMark{
		Version: mark.Version, Digest: v1alpha1.HexDigest(mark.Digest), Bytes: v1alpha1.HexDigest(mark.Bytes), Reset: was.Reset,
	}
	follows := ledger.FirstSlot(mark)
	if there {
		if record.SlotMark(was) == mark {
			return next, "", false
		}
		follows = record.SlotMark(was).Next(mark)
	}
	if follows == nil {
		return next, "", true
	}
	r, ok := s.Policy.SlotResetOf(slot.String(), mark.Version, mark.Digest)
	if !ok || k.ResetUsed(r.ID()) {
		return next, "", false
	}
	next.Reset = v1alpha1.ResetID(r.ID())
	return next, r.ID(), true
}

// slotsRecord is a copy of the known record, or an empty one.
func slotsRecord(known *v1alpha1.Ledger, at place, n int) *v1alpha1.Ledger {
	if known != nil && known.Spec.Slots != nil {
		return known.DeepCopy()
	}
	return &v1alpha1.Ledger{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.SlotsName(at.namespace, at.bundle, n)},
		Spec: v1alpha1.LedgerSpec{Slots: &v1alpha1.LedgerSlots{
			Namespace: at.namespace, Bundle: at.bundle, Marks: map[string]v1alpha1.LedgerSlotMark{},
		}},
	}
}
