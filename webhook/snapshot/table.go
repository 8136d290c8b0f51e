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

	group  func(V) string // nil: values are in no groups
	groups map[string]map[string]V
}

func (t *table[V]) set(key string, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = map[string]V{}
	}
	t.leave(key)
	t.byKey[key] = value
	t.list = nil
	t.join(key, value)
}

func (t *table[V]) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(key)
	delete(t.byKey, key)
	t.list = nil
}

// join puts a value into its group. The caller holds the lock.
func (t *table[V]) join(key string, value V) {
	if t.group == nil {
		return
	}
	name := t.group(value)
	if t.groups == nil {
		t.groups = map[string]map[string]V{}
	}
	if t.groups[name] == nil {
		t.groups[name] = map[string]V{}
	}
	t.groups[name][key] = value
}

// leave takes the value that a key has out of its group. The caller holds the lock.
func (t *table[V]) leave(key string) {
	value, ok := t.byKey[key]
	if !ok || t.group == nil {
		return
	}
	name := t.group(value)
	delete(t.groups[name], key)
	if len(t.groups[name]) == 0 {
		delete(t.groups, name)
	}
}

// of lists the values of a group by key.
func (t *table[V]) of(group string) []V {
	t.mu.RLock()
	defer t.mu.RUnlock()
	members := t.groups[group]
	list := make([]V, 0, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		list = append(list, members[key])
	}
	return list
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
