package fresh

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// bound ends a read to which nobody answers. The API server ends its own requests after a minute.
const bound = time.Minute

// Reads are reads of things that have keys. The zero Reads is ready.
type Reads[K comparable, T any] struct {
	mu     sync.Mutex
	newest map[K]*call[T] // what nobody reads has none
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

// Do gives what do found in a call for the key that began after Do was called. Calls for one key are made one
// after the other: who asks while one is made waits for its end, and shares the next with all who did. That
// one calls the do of who asked last, and what it gives is everybody's.
func (r *Reads[K, T]) Do(ctx context.Context, key K, do func(context.Context) (T, error)) (T, error) {
	c := r.join(ctx, key, do)
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("waiting for a read: %w", ctx.Err())
	}
}

func (r *Reads[K, T]) join(ctx context.Context, key K, do func(context.Context) (T, error)) *call[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.newest[key]
	if c == nil {
		c = r.start(key)
		go r.work(key)
	}
	// check: PolicyRollback: what was stored before somebody asked, and was replaced since, is what they judge by
	if c.begun {
		c = r.start(key)
	}
	c.ctx, c.do = ctx, do
	return c
}

// start makes a call that others may join.
func (r *Reads[K, T]) start(key K) *call[T] {
	if r.newest == nil {
		r.newest = map[K]*call[T]{}
	}
	r.newest[key] = &call[T]{done: make(chan struct{})}
	return r.newest[key]
}

// work makes calls for as long as somebody waits for one.
func (r *Reads[K, T]) work(key K) {
	for c := r.next(key); c != nil; c = r.next(key) {
		c.make()
	}
}

// next begins the newest call, which nobody joins from now on.
func (r *Reads[K, T]) next(key K) *call[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.newest[key]
	if c.begun {
		delete(r.newest, key)
		return nil
	}
	c.begun = true
	return c
}

// make calls for all: that one of them gives up must not end it for the others.
func (c *call[T]) make() {
	defer close(c.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), bound)
	defer cancel()
	c.value, c.err = c.do(ctx)
}
