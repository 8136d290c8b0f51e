package rejudge

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// maxRemembered bounds the hosts that are remembered as Verified after they are gone.
const maxRemembered = 100_000

// table holds the verdicts of all stored objects.
type table struct {
	mu       sync.Mutex
	verdicts map[Key]*Verdict
	// verified are hosts that were seen Verified, though they may be gone.
	verified map[Key]bool
}

func newTable() *table {
	return &table{verdicts: map[Key]*Verdict{}, verified: map[Key]bool{}}
}

// transition is a verdict that differs from the one before.
type transition struct {
	Verdict
	// recovered says that the object verifies now, and did not before.
	recovered bool
}

// get is the verdict of an object; nil where there is none.
func (t *table) get(k Key) *Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verdicts[k]
}

// wasVerified reports whether a host of that name was ever seen Verified.
func (t *table) wasVerified(k Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verified[k]
}

// put keeps a verdict, and says whether it tells something new. An object that is seen for the first
// time and verifies does not; one that does not verify does, because nobody may have been looking when
// it ceased to.
func (t *table) put(j judged) (transition, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.verdicts[j.Key]
	if j.over {
		delete(t.verdicts, j.Key)
		return transition{}, false
	}
	v := j.Verdict
	t.verdicts[j.Key] = &v
	if j.host != nil && j.host.ExecMode == object.ExecVerified && len(t.verified) < maxRemembered {
		t.verified[j.Key] = true
	}
	if old == nil {
		return transition{Verdict: v}, !v.Decision.Allowed()
	}
	changed := old.Decision.Allowed() != v.Decision.Allowed() || old.Decision.Reason != v.Decision.Reason || old.Excused != v.Excused
	return transition{Verdict: v, recovered: v.Decision.Allowed()}, changed
}

// drop forgets an object that is gone.
func (t *table) drop(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.verdicts, k)
}

// keep forgets the objects of a kind that were not seen.
func (t *table) keep(kind string, seen map[Key]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.verdicts {
		if k.Kind == kind && !seen[k] {
			delete(t.verdicts, k)
		}
	}
}

// all returns the verdicts, in order.
func (t *table) all() []Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Verdict, 0, len(t.verdicts))
	for _, v := range t.verdicts {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// group is what a gauge counts.
type group struct {
	kind, word string
	reason     decision.Reason
}

// count counts verdicts by kind, word and reason: closed sets, whatever objects are called.
func count(verdicts []Verdict) map[group]int {
	n := map[group]int{}
	for _, v := range verdicts {
		n[group{v.Kind, v.word(), v.Decision.Reason}]++
	}
	return n
}
