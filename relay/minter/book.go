package minter

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/relay/token"
)

// Entry is a token that this minter gave, or took over from the minter before it.
type Entry struct {
	ID       string
	Run      types.NamespacedName
	UID      types.UID
	Host     string // in the run's namespace
	NodeName string
	Expires  time.Time
	Issued   bool // both Secrets are there, and the run says so
}

// minted is when the token was made. The condition Joined keeps that time while the token lives: the
// next minter reckons by it.
func (e Entry) minted() time.Time { return e.Expires.Add(-token.Life) }

// Book is what the minter itself knows of living tokens, one a run. What a HostRun's status says counts
// only when a minter starts.
type Book struct {
	mu      sync.Mutex
	entries map[types.UID]Entry
}

// NewBook is an empty one.
func NewBook() *Book { return &Book{entries: map[types.UID]Entry{}} }

// put adds or replaces the token of a run. It answers false, and changes nothing, where another run
// has the id or the node name.
func (b *Book) put(e Entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, other := range b.entries {
		// check: NodeNameTaken: two hosts with a credential for one name, or one credential for two
		if uid != e.UID && (other.ID == e.ID || other.NodeName == e.NodeName) {
			return false
		}
	}
	b.entries[e.UID] = e
	return true
}

func (b *Book) drop(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, uid)
}

func (b *Book) of(uid types.UID) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[uid]
	return e, ok
}

func (b *Book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// find gives the entries for which the predicate holds.
func (b *Book) find(holds func(Entry) bool) []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []Entry
	for _, e := range b.entries {
		if holds(e) {
			found = append(found, e)
		}
	}
	return found
}

// Holder says which run holds the token of an id. A token that is not issued is held by nobody.
func (b *Book) Holder(id string) (Entry, bool) {
	found := b.find(func(e Entry) bool { return e.ID == id && e.Issued })
	if len(found) != 1 {
		return Entry{}, false
	}
	return found[0], true
}
