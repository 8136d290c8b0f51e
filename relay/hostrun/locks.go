package hostrun

import "sync"

// hostLocks lets one run at a time onto a host.
type hostLocks struct {
	mu   sync.Mutex
	held map[string]struct{}
}

func newHostLocks() *hostLocks { return &hostLocks{held: map[string]struct{}{}} }

// take answers false when another run has the host.
func (l *hostLocks) take(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.held[host]; taken {
		return false
	}
	l.held[host] = struct{}{}
	return true
}

func (l *hostLocks) release(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, host)
}
