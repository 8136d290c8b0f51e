package snapshot

import (
	"maps"
	"slices"
	"sync"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// place is where the fragments of a bundle stand.
type place struct{ namespace, bundle string }

// slotTable holds the records of fragments by what they are of, for many readers.
type slotTable struct {
	mu      sync.RWMutex
	records map[place]map[string]*v1alpha1.LedgerSlots // by the record's name
	places  map[string]place
}

// set takes a record in the place of the last under that name; nil takes that out.
func (t *slotTable) set(name string, l *v1alpha1.LedgerSlots) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, known := t.places[name]; known {
		delete(t.places, name)
		delete(t.records[at], name)
	}
	if l == nil {
		return
	}
	if t.records == nil {
		t.records, t.places = map[place]map[string]*v1alpha1.LedgerSlots{}, map[string]place{}
	}
	at := place{l.Namespace, l.Bundle}
	if t.records[at] == nil {
		t.records[at] = map[string]*v1alpha1.LedgerSlots{}
	}
	t.records[at][name], t.places[name] = l, at
}

// of are the records of a namespace and bundle.
func (t *slotTable) of(namespace, bundle string) []*v1alpha1.LedgerSlots {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.records[place{namespace, bundle}]))
}

func (t *slotTable) resetUsed(id string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, records := range t.records {
		for _, l := range records {
			if record.SlotReset(l, id) {
				return true
			}
		}
	}
	return false
}

// Slot is the highest version of a fragment that was seen stored and verified.
func (s *Store) Slot(slot ledger.Slot) (ledger.SlotMark, bool) {
	return record.Slot(s.slots.of(slot.Namespace, slot.Bundle), slot)
}

// Bundle reports whether a slot of a ContainerProfile in that bundle is known.
func (s *Store) Bundle(namespace, name string) bool {
	return name != "" && record.HasProfiles(s.slots.of(namespace, name))
}
