package snapshot

import (
	"maps"
	"slices"
	"sync"
)

// table holds the values of one kind by key, for many readers. Values are shared and never changed.
type table[V any] struct {
	mu    sync.RWMutex
	byKey map[string]V
	list  []V // nil: not made since the last change
}

func (t *table[V]) set(key string, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = map[string]V{}
	}
	t.byKey[key] = value
	t.list = nil
}

func (t *table[V]) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key)
	t.list = nil
}

func (t *table[V]) get(key string) (V, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, ok := t.byKey[key]
	return value, ok
}

// all lists the values by key. The list is shared.
func (t *table[V]) all() []V {
	t.mu.RLock()
	list, size := t.list, len(t.byKey)
	t.mu.RUnlock()
	if list != nil || size == 0 {
		return list
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = make([]V, 0, len(t.byKey))
	for _, key := range slices.Sorted(maps.Keys(t.byKey)) {
		t.list = append(t.list, t.byKey[key])
	}
	return t.list
}

func (t *table[V]) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byKey)
}
