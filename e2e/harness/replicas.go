//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// withdrawal is how long the news that a replica goes takes to reach who balances: an EndpointSlice
// is written within tens of milliseconds of the deletion of a pod, and read as fast.
const withdrawal = 300 * time.Millisecond

// Replica is one webhook process behind the balancer.
type Replica struct {
	*product.Program
	Address string
}

// Replicas are webhook processes behind a balancer, kept as a Deployment keeps pods: one that is
// told to end is withdrawn while it still drains, and its replacement starts at once, at an address
// of its own, and is balanced to as soon as it is ready.
type Replicas struct {
	product  *product.Product
	balancer *Balancer
	flags    []string

	mu      sync.Mutex
	present []*Replica
	ending  []*Replica
	made    int
}

// StartReplicas starts n and returns when all are ready and behind the balancer, alone.
func StartReplicas(ctx context.Context, p *product.Product, b *Balancer, n int, flags ...string) (*Replicas, error) {
	r := &Replicas{product: p, balancer: b, flags: flags}
	var addresses []string
	for range n {
		started, err := r.start(ctx)
		if err != nil {
			return r, err
		}
		r.present = append(r.present, started)
		addresses = append(addresses, started.Address)
	}
	for _, started := range r.present {
		if err := started.Wait(ctx, "/readyz"); err != nil {
			return r, err
		}
	}
	b.Set(addresses...)
	return r, nil
}

// Present are those that have not been told to end.
func (r *Replicas) Present() []*Replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Replica(nil), r.present...)
}

// Replace sends a signal to the replica of a place, starts another in its stead and returns when
// that is ready and balanced to.
func (r *Replicas) Replace(ctx context.Context, place int, signal syscall.Signal) error {
	r.mu.Lock()
	old := r.present[place]
	r.ending = append(r.ending, old)
	r.mu.Unlock()
	if err := syscall.Kill(old.PID(), signal); err != nil {
		return fmt.Errorf("ending %s: %w", old.Name, err)
	}
	timer := time.AfterFunc(withdrawal, func() { r.balancer.Remove(old.Address) })
	defer timer.Stop()
	started, err := r.start(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.present[place] = started
	r.mu.Unlock()
	if err := started.Wait(ctx, "/readyz"); err != nil {
		return err
	}
	r.balancer.Remove(old.Address)
	r.balancer.Add(started.Address)
	return nil
}

// KillAll ends all at once, without warning, and starts as many others; it returns when those are
// balanced to. What is asked in between finds nobody.
func (r *Replicas) KillAll(ctx context.Context) error {
	count := len(r.Present())
	var all []error
	for _, old := range r.Present() {
		all = append(all, syscall.Kill(old.PID(), syscall.SIGKILL))
		<-old.Done()
		r.balancer.Remove(old.Address)
	}
	r.mu.Lock()
	r.present = nil
	r.mu.Unlock()
	for range count {
		started, err := r.start(ctx)
		if err != nil {
			return errors.Join(append(all, err)...)
		}
		r.mu.Lock()
		r.present = append(r.present, started)
		r.mu.Unlock()
		r.balancer.Add(started.Address) // before it is ready: it must refuse by itself
	}
	for _, started := range r.Present() {
		all = append(all, started.Wait(ctx, "/readyz"))
	}
	return errors.Join(all...)
}

// Close kills every process that there is still.
func (r *Replicas) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []error
	for _, old := range append(r.present, r.ending...) {
		all = append(all, old.Kill())
	}
	return errors.Join(all...)
}

// Drained waits for those that were told to end.
func (r *Replicas) Drained(ctx context.Context) error {
	r.mu.Lock()
	ending := append([]*Replica(nil), r.ending...)
	r.mu.Unlock()
	for _, old := range ending {
		select {
		case <-old.Done():
		case <-ctx.Done():
			return fmt.Errorf("%s still runs: %w", old.Name, ctx.Err())
		}
	}
	return nil
}

func (r *Replicas) start(ctx context.Context) (*Replica, error) {
	address, err := product.FreeAddress(r.product.Addr())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.made++
	name := fmt.Sprintf("webhook-replica-%d", r.made)
	r.mu.Unlock()
	program, err := r.product.StartWebhookAt(ctx, name, address, r.flags...)
	if err != nil {
		return nil, err
	}
	return &Replica{Program: program, Address: address}, nil
}
