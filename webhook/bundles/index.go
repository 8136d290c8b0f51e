package bundles

import (
	"cmp"
	"slices"
	"sync"
)

// ID names a bundle.
type ID struct{ Namespace, Name string }

// index holds the facts of all stored objects of our kinds.
type index struct {
	mu      sync.RWMutex
	objects map[Key]*facts
	groups  map[group]*labelled
	// bundlesOf counts, for the name of an object, the bundles that have a member of that name.
	bundlesOf map[Key]map[ID]bool
	// kinds are those whose stored objects are known.
	kinds map[string]bool
}

// group is what objects of a kind carry the labels of.
type group struct {
	kind string
	ID
}

// labelled are the objects that carry a bundle's labels. Those that nobody signed are counted: however
// many there are, nobody goes through them.
type labelled struct {
	signed   map[Key]*facts
	unsigned map[Key]*facts
	// sample are a few of the unsigned, for people; nil where it is to be drawn anew.
	sample []*facts
}

func newIndex() *index {
	return &index{objects: map[Key]*facts{}, groups: map[group]*labelled{}, bundlesOf: map[Key]map[ID]bool{}, kinds: map[string]bool{}}
}

// put takes an object in, and returns what stood there before; nil where nothing did.
func (x *index) put(f *facts) (old *facts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old = x.objects[f.Key]
	if old != nil {
		x.leave(old)
	}
	x.objects[f.Key] = f
	x.join(f)
	return old
}

// drop takes an object out.
func (x *index) drop(k Key) (old *facts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old = x.objects[k]
	if old != nil {
		x.leave(old)
		delete(x.objects, k)
	}
	return old
}

// at is the group that an object stands in by its labels. Without a class it is no fragment.
func (f *facts) at() (group, bool) {
	return group{f.Kind, ID{f.Namespace, f.bundle}}, f.class != "" && f.bundle != ""
}

func (x *index) join(f *facts) {
	at, ok := f.at()
	if !ok {
		return
	}
	m := x.groups[at]
	if m == nil {
		m = &labelled{signed: map[Key]*facts{}, unsigned: map[Key]*facts{}}
		x.groups[at] = m
	}
	if f.unsigned == nil {
		m.signed[f.Key] = f
		return
	}
	if len(m.sample) == len(m.unsigned) && len(m.sample) < maxUnsigned {
		m.sample = append(m.sample, f)
	}
	m.unsigned[f.Key] = f
}

func (x *index) leave(f *facts) {
	at, ok := f.at()
	m := x.groups[at]
	if !ok || m == nil {
		return
	}
	delete(m.signed, f.Key)
	delete(m.unsigned, f.Key)
	if slices.Contains(m.sample, f) {
		m.sample = nil
	}
	if len(m.signed)+len(m.unsigned) == 0 {
		delete(x.groups, at)
	}
}

// get is what is known of an object; nil where there is none.
func (x *index) get(k Key) *facts {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.objects[k]
}

// signed are the objects that carry a bundle's labels and a signature, by name.
func (x *index) signed(at group) []*facts {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m := x.groups[at]
	if m == nil {
		return nil
	}
	list := make([]*facts, 0, len(m.signed))
	for _, f := range m.signed {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *facts) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// unsigned says how many objects carry a bundle's labels and no signature, and gives a few of them.
func (x *index) unsigned(at group) (n int, sample []*facts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.groups[at]
	if m == nil {
		return 0, nil
	}
	if m.sample == nil {
		for _, f := range m.unsigned {
			if len(m.sample) == maxUnsigned {
				break
			}
			m.sample = append(m.sample, f)
		}
	}
	return len(m.unsigned), slices.Clone(m.sample)
}

// all are the objects of a kind, by namespace and name.
func (x *index) all(kind string) []*facts {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []*facts
	for _, f := range x.objects {
		if f.Kind == kind {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *facts) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// bundles are those that a signed fragment carries the label of.
func (x *index) bundles(kind string) []ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var ids []ID
	for at, m := range x.groups {
		if at.kind == kind && len(m.signed) > 0 {
			ids = append(ids, at.ID)
		}
	}
	return ids
}

// claim says that a bundle has a member of that name: whatever becomes of the object, whatever its
// labels say, concerns the bundle.
func (x *index) claim(k Key, id ID, member bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !member {
		delete(x.bundlesOf[k], id)
		if len(x.bundlesOf[k]) == 0 {
			delete(x.bundlesOf, k)
		}
		return
	}
	if x.bundlesOf[k] == nil {
		x.bundlesOf[k] = map[ID]bool{}
	}
	x.bundlesOf[k][id] = true
}

// claimed are the bundles that an object's name concerns.
func (x *index) claimed(k Key) []ID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var ids []ID
	for id := range x.bundlesOf[k] {
		ids = append(ids, id)
	}
	return ids
}

// learn says that the stored objects of a kind are known, unlearn that they are not yet.
func (x *index) learn(kind string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds[kind] = true
}

func (x *index) unlearn(kind string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.kinds, kind)
}

func (x *index) learnt(kinds []string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, kind := range kinds {
		if !x.kinds[kind] {
			return false
		}
	}
	return true
}
