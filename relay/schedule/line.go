package schedule

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
)

// ErrClosed is Take's answer once the Line is shut down.
var ErrClosed = errors.New("the relay is shutting down")

// Line is a workqueue in which an item's turn comes when its host and a slot are
// free. As in client-go's, an item that is added while it waits waits once, and one
// that is added while it is worked on waits again afterwards. Once it is shut down
// no item is handed out any more: nothing is started by a relay that stops.
type Line[T comparable] struct {
	claim func(T) Claim

	mu      sync.Mutex // guards what is below
	changed *sync.Cond
	hall    *hall
	waits   sets.Set[T] // to be worked on
	granted []T         // of those, whose turn has come
	working map[T]*turn // whose turn has come
	busy    sets.Set[T] // handed out
	closed  bool
	drain   bool
}

// New makes a Line with that many slots, one for each worker. claim must always
// give the same for an item.
func New[T comparable](slots int, claim func(T) Claim) *Line[T] {
	l := &Line[T]{claim: claim, hall: newHall(slots), waits: sets.New[T](), working: map[T]*turn{}, busy: sets.New[T]()}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Add lets the item wait for its turn.
func (l *Line[T]) Add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.waits.Has(item) {
		return
	}
	l.waits.Insert(item)
	if !l.busy.Has(item) {
		l.enter(item)
	}
}

func (l *Line[T]) enter(item T) {
	t := &turn{claim: l.claim(item)}
	t.grant = func() {
		l.working[item] = t
		l.granted = append(l.granted, item)
		l.changed.Broadcast()
	}
	l.hall.enter(t)
	l.hall.admit()
}

// Get waits for an item whose turn has come.
func (l *Line[T]) Get() (item T, shutdown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.granted) == 0 && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		return item, true
	}
	item = l.granted[0]
	l.granted = l.granted[1:]
	l.waits.Delete(item)
	l.busy.Insert(item)
	return item, false
}

// Done ends the item's turn.
func (l *Line[T]) Done(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.working[item]
	if t == nil {
		return
	}
	delete(l.working, item)
	l.busy.Delete(item)
	l.hall.leave(t)
	if l.waits.Has(item) {
		l.enter(item)
	}
	l.hall.admit()
	l.changed.Broadcast()
}

// Take waits for a turn on a host beside the items', within the same limits. The
// turn lasts until release is called.
func (l *Line[T]) Take(ctx context.Context, c Claim) (release func(), err error) {
	granted := make(chan struct{})
	t := &turn{claim: c, grant: func() { close(granted) }}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.hall.enter(t)
		l.hall.admit()
	}
	l.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	var once sync.Once
	leave := func() { once.Do(func() { l.leave(t) }) }
	select {
	case <-granted:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

func (l *Line[T]) leave(t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hall.leave(t)
	l.hall.admit()
}

// Len is how many wait, for a host or a slot.
func (l *Line[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hall.waiting
}

// InUse is how many slots are taken.
func (l *Line[T]) InUse() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hall.running
}

// ShutDown ends all Gets.
func (l *Line[T]) ShutDown() { l.shutDown(false) }

// ShutDownWithDrain ends all Gets and waits until what was handed out is done.
func (l *Line[T]) ShutDownWithDrain() { l.shutDown(true) }

func (l *Line[T]) shutDown(drain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.drain = true, drain
	l.changed.Broadcast()
	for l.drain && l.busy.Len() > 0 {
		l.changed.Wait()
	}
}

// ShuttingDown reports whether it is.
func (l *Line[T]) ShuttingDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

var _ workqueue.TypedInterface[string] = (*Line[string])(nil)
