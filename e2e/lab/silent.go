//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Silent is an address that accepts TCP connections and holds them. It lives in this process.
type Silent struct {
	listener net.Listener
	play     func(net.Conn)
	done     chan struct{}
	mu       sync.Mutex
	held     []net.Conn
}

// SilentHost starts one on the bridge that never says a word.
func (l *Lab) SilentHost() (*Silent, error) { return l.PlayedHost(func(net.Conn) {}) }

// PlayedHost starts one on the bridge with something to say: play has each connection to itself, and must end
// when a write fails. Afterwards the connection is held.
func (l *Lab) PlayedHost(play func(net.Conn)) (*Silent, error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(l.Addr(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("starting a silent host: %w", err)
	}
	s := &Silent{listener: ln, play: play, done: make(chan struct{})}
	go s.hold()
	l.mu.Lock()
	l.silent = append(l.silent, s)
	l.mu.Unlock()
	return s, nil
}

func (s *Silent) hold() {
	defer close(s.done)
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.held = append(s.held, c)
		s.mu.Unlock()
		go s.play(c)
	}
}

// AddrPort is where it listens.
func (s *Silent) AddrPort() netip.AddrPort {
	return netip.MustParseAddrPort(s.listener.Addr().String())
}

// Close ends it with all connections it holds.
func (s *Silent) Close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.held {
		err = errors.Join(err, c.Close())
	}
	s.held = nil
	return err
}

// RefusedAddr is an address where nothing listens and the kernel says so at once.
func (l *Lab) RefusedAddr() (netip.AddrPort, error) {
	for port := uint16(1); port < 1024; port++ { // below 1024 nothing comes up by chance
		a := netip.AddrPortFrom(l.Addr(), port)
		ln, err := net.Listen("tcp", a.String())
		if err != nil {
			continue
		}
		return a, ln.Close()
	}
	return netip.AddrPort{}, errors.New("finding a port where nothing listens: none below 1024")
}

// AbsentAddr is an address of the lab's network that no host has: connecting fails after the kernel's three seconds
// of asking for it.
func (l *Lab) AbsentAddr() netip.AddrPort {
	a := l.net.prefix.Addr().As4()
	a[3] = 254
	return netip.AddrPortFrom(netip.AddrFrom4(a), 22)
}
