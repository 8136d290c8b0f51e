package certgate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"time"
)

// Settle is how long a caBundle is stored before it counts as seen by every API server: they watch
// it, so a second is the rule. 10 s covers a watch that had to be opened again.
const Settle = 10 * time.Second

// Source gives the newest certificate, as tls.Config.GetCertificate does.
type Source func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Trust says whether the API server would take a certificate.
type Trust int

// The zero value is what is known before anything was read, or where no configuration is stored.
const (
	Unknown Trust = iota
	Untrusted
	Trusted
)

// Gate stands between a Source and the TLS server. Make it with New.
type Gate struct {
	source Source
	trust  func(*tls.Certificate) Trust
	now    func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	waiting *tls.Certificate
	since   time.Time // when waiting was first seen to be trusted; zero before
}

// New returns a gate that asks trust whether the API server would take a certificate of the source.
func New(source Source, trust func(*tls.Certificate) Trust, now func() time.Time) *Gate {
	return &Gate{source: source, trust: trust, now: now}
}

// GetCertificate is for tls.Config.
func (g *Gate) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	next, err := g.source(hello)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || next == nil {
		if g.current != nil && !expired(g.current, g.now()) {
			return g.current, nil // the source lost what it had; what was handed out is still good
		}
		return nil, errors.Join(errors.New("there is no serving certificate yet"), err)
	}
	if g.takes(next) {
		g.current, g.waiting, g.since = next, nil, time.Time{}
	}
	return g.current, nil
}

// takes reports whether next is to be served from now on.
func (g *Gate) takes(next *tls.Certificate) bool {
	now := g.now()
	if g.current == nil || same(g.current, next) || expired(g.current, now) {
		return true
	}
	if g.waiting == nil || !same(g.waiting, next) {
		g.waiting, g.since = next, time.Time{}
	}
	switch g.trust(next) {
	case Unknown:
		return true // nobody is known to check, so there is nothing to wait for
	case Trusted:
		if g.since.IsZero() {
			g.since = now
		}
		return now.Sub(g.since) >= Settle
	default:
		g.since = time.Time{}
		return false
	}
}

// Ready is an error while the API server would refuse what is served: no request should be sent here.
func (g *Gate) Ready() error {
	served, err := g.GetCertificate(nil)
	if err != nil {
		return err
	}
	if g.trust(served) == Untrusted {
		return errors.New("the caBundle of webhook configuration hostwarrant does not trust the serving certificate yet; hint: is hostwarrant-controller running?")
	}
	return nil
}

func same(a, b *tls.Certificate) bool {
	return a == b || len(a.Certificate) > 0 && len(b.Certificate) > 0 && bytes.Equal(a.Certificate[0], b.Certificate[0])
}

// expired is true also for what cannot be read.
func expired(c *tls.Certificate, now time.Time) bool {
	leaf, err := leafOf(c)
	return err != nil || !now.Before(leaf.NotAfter)
}

func leafOf(c *tls.Certificate) (*x509.Certificate, error) {
	if c.Leaf != nil {
		return c.Leaf, nil
	}
	if len(c.Certificate) == 0 {
		return nil, errors.New("an empty certificate")
	}
	return x509.ParseCertificate(c.Certificate[0])
}
