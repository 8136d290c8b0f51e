package main

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// limitedListener holds no more than so many connections at a time, and one more that it accepted and
// has no room for yet. Beyond that it closes the one that has waited longest for a request: connections
// that ask for nothing must not keep out one that does. A request, once its header is read, is never cut.
type limitedListener struct {
	net.Listener
	log *slog.Logger

	mu      sync.Mutex
	changed *sync.Cond // there may be room, or a connection to close
	room    int
	waiting *list.List // of *limitedConn: those without a request, the longest waiting first
	closed  bool
}

func newLimitedListener(inner net.Listener, room int, log *slog.Logger) *limitedListener {
	l := &limitedListener{Listener: inner, log: log, room: room, waiting: list.New()}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Accept waits for a connection, and makes room for it.
func (l *limitedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.makeRoom() {
		l.hangUp(inner)
		return nil, net.ErrClosed
	}
	return &limitedConn{Conn: inner, of: l}, nil
}

// Close also ends an Accept that waits for room.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// makeRoom takes room for one connection; false where the listener was closed.
func (l *limitedListener) makeRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.room == 0 && !l.closed {
		if first := l.waiting.Front(); first != nil {
			if longest, ok := first.Value.(*limitedConn); ok {
				l.remove(longest)
				l.hangUp(longest.Conn)
			}
			continue
		}
		l.changed.Wait()
	}
	if l.closed {
		return false
	}
	l.room--
	return true
}

// hangUp closes a connection under TLS: nothing is said to a client that may not listen.
func (l *limitedListener) hangUp(c net.Conn) {
	if err := c.Close(); err != nil {
		l.log.Debug("closing a connection to make room", "error", err)
	}
}

// connState is told by http.Server what a connection does.
func (l *limitedListener) connState(c net.Conn, state http.ConnState) {
	secured, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	limited, ok := secured.NetConn().(*limitedConn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A new connection waits too: for the handshake and for a header.
	waits := state == http.StateNew || state == http.StateIdle
	switch {
	case limited.gone || waits == (limited.waits != nil):
	case waits:
		limited.waits = l.waiting.PushBack(limited)
		l.changed.Signal()
	default:
		l.waiting.Remove(limited.waits)
		limited.waits = nil
	}
}

// remove gives the room of a connection back, once. It wants the lock.
func (l *limitedListener) remove(c *limitedConn) {
	if c.gone {
		return
	}
	c.gone = true
	if c.waits != nil {
		l.waiting.Remove(c.waits)
		c.waits = nil
	}
	l.room++
	l.changed.Signal()
}

// limitedConn is a connection that takes room; of.mu guards what follows it.
type limitedConn struct {
	net.Conn
	of    *limitedListener
	waits *list.Element // in of.waiting, nil while it has a request
	gone  bool
}

// Close closes the connection, and gives its room back.
func (c *limitedConn) Close() error {
	err := c.Conn.Close() // first: room is for what is open
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.remove(c)
	return err
}
