package fresh

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// bound ends a read to which nobody answers. The API server ends its own requests after a minute.
const bound = time.Minute

// Read is one thing that several read. The zero Read is ready.
type Read[T any] struct {
	mu   sync.Mutex
	last *call[T] // the newest; nil: nobody waits for one
}

// call is one call of a function, for all who wait for it.
type call[T any] struct {
	ctx   context.Context //nolint:containedctx // of who joined last
	do    func(context.Context) (T, error)
	begun bool

	done  chan struct{}
	value T
	err   error
}

// Do gives what do found in a call that began after Do was called. Calls are made one after the other: who
// asks while one is made waits for its end, and shares the next with all who did. That one calls the do of
// who asked last.
func (r *Read[T]) Do(ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	c := r.join(ctx, do)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("waiting for a read: %w", ctx.Err())
	}
}

func (r *Read[T]) join(ctx context.Context, do func(context.Context) (T, error)) *call[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = &call[T]{done: make(chan struct{})}
		go r.work()
	}
	// check: PolicyRollback: what was stored before somebody asked, and was replaced since, is what they judge by
	if r.last.begun {
		r.last = &call[T]{done: make(chan struct{})}
	}
	r.last.ctx, r.last.do = ctx, do
	return r.last
}

// work makes calls for as long as somebody waits for one.
func (r *Read[T]) work() {
	for c := r.next(); c != nil; c = r.next() {
		c.make()
	}
}

// next begins the newest call, which nobody joins from now on.
func (r *Read[T]) next() *call[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.begun {
		r.last = nil
		return nil
	}
	r.last.begun = true
	return r.last
}

// make calls for all: that one of them gives up must not end it for the others.
func (c *call[T]) make() {
	defer close(c.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), bound)
	defer cancel()
	c.value, c.err = c.do(ctx)
}
