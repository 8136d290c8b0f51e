package ledger

import (
	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Slot is the highest version of a fragment that was seen stored and verified.
func (k *Keeper) Slot(slot ledger.Slot) (ledger.SlotMark, bool) {
	return record.Slot(k.slots(slot.Namespace, slot.Bundle), slot)
}

// Bundle reports whether a slot of a ContainerProfile in that bundle is known.
func (k *Keeper) Bundle(namespace, name string) bool {
	return name != "" && record.HasProfiles(k.slots(namespace, name))
}

// slots are the records of a namespace and bundle.
func (k *Keeper) slots(namespace, bundle string) (all []*v1alpha1.LedgerSlots) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for n := 0; ; n++ {
		l := k.records[ledger.SlotsName(namespace, bundle, n)]
		if l == nil || l.Spec.Slots == nil {
			return all
		}
		all = append(all, l.Spec.Slots)
	}
}

// lowerSlots reports whether a stored record of slots says less than one that was known.
func lowerSlots(stored, known *v1alpha1.LedgerSlots) bool {
	if stored == nil {
		return true
	}
	for key, k := range known.Marks {
		if s, ok := stored.Marks[key]; !ok || s.Version < k.Version {
			return true
		}
	}
	return false
}
