//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Balancer passes TCP connections on to backends in turn, as kube-proxy does for a Service: it
// looks at nothing inside, knows nothing of health, and a backend that does not answer costs the
// caller its connection. Who is a backend is told to it.
type Balancer struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex
	backends []string
	next     int
	conns    map[net.Conn]string // the caller's side, and the backend that it was given
	total    int
	closed   bool
}

// NewBalancer listens at the address.
func NewBalancer(ctx context.Context, address string) (*Balancer, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the balancer: %w", err)
	}
	b := &Balancer{listener: listener, conns: map[net.Conn]string{}}
	b.wait.Go(b.serve)
	return b, nil
}

// Addr is where it listens.
func (b *Balancer) Addr() string { return b.listener.Addr().String() }

// Add makes the address a backend.
func (b *Balancer) Add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.backends, address) {
		b.backends = append(b.backends, address)
	}
}

// Remove sends no new connection to the address; those that are open go on.
func (b *Balancer) Remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(a string) bool { return a == address })
}

// Set replaces the backends and cuts every connection, so that the next request goes to a new one.
func (b *Balancer) Set(addresses ...string) {
	b.mu.Lock()
	b.backends = slices.Clone(addresses)
	b.mu.Unlock()
	b.Cut()
}

// Backends are the present ones.
func (b *Balancer) Backends() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.backends)
}

// Cut closes every connection.
func (b *Balancer) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		hangUp(c)
	}
}

// Connections is how many there have been.
func (b *Balancer) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Close stops listening and cuts every connection.
func (b *Balancer) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	err := b.listener.Close()
	b.Cut()
	b.wait.Wait()
	return err
}

func (b *Balancer) serve() {
	for {
		conn, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			b.wait.Go(func() { b.pass(conn) })
		}
	}
}

// pass copies between the caller and a backend until either side has ended.
func (b *Balancer) pass(conn net.Conn) {
	defer hangUp(conn)
	address, ok := b.take(conn)
	if !ok {
		return
	}
	defer b.forget(conn)
	backend, err := (&net.Dialer{}).Dial("tcp", address)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	copyUntilEnd := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) //nolint:errcheck // an end is an end, whichever way it came
		hangUp(to)
		hangUp(from)
	}
	both.Go(func() { copyUntilEnd(backend, conn) })
	both.Go(func() { copyUntilEnd(conn, backend) })
	both.Wait()
}

// hangUp closes a connection that may be closed already; what it still held is lost.
func hangUp(conn net.Conn) {
	_ = conn.Close() //nolint:errcheck // nothing is left to be done about it
}

// take picks the backend whose turn it is.
func (b *Balancer) take(conn net.Conn) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.backends) == 0 || b.closed {
		return "", false
	}
	address := b.backends[b.next%len(b.backends)]
	b.next++
	b.total++
	b.conns[conn] = address
	return address, true
}

func (b *Balancer) forget(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
}
