package record

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// Slot is what records of its namespace and bundle remember of a slot: the highest, should it stand
// in two of them while it is moved.
func Slot(records []*v1alpha1.LedgerSlots, slot ledger.Slot) (mark ledger.SlotMark, known bool) {
	for _, l := range records {
		m, ok := l.Marks[slot.Key()]
		if ok && (!known || m.Version > mark.Version) {
			mark, known = SlotMark(m), true
		}
	}
	return mark, known
}

// SlotMark is what a record remembers of a fragment.
func SlotMark(m v1alpha1.LedgerSlotMark) ledger.SlotMark {
	return ledger.SlotMark{Version: m.Version, Digest: string(m.Digest), Bytes: string(m.Bytes)}
}

// HasProfiles reports whether a ContainerProfile is among the slots: the class of other kinds has a slash in it.
func HasProfiles(records []*v1alpha1.LedgerSlots) bool {
	for _, l := range records {
		for key := range l.Marks {
			if strings.Count(key, "/") == 1 {
				return true
			}
		}
	}
	return false
}

// SlotReset reports whether a reset, by its id, was applied to a slot of the record.
func SlotReset(l *v1alpha1.LedgerSlots, id string) bool {
	for _, m := range l.Marks {
		if string(m.Reset) == id {
			return true
		}
	}
	return false
}
