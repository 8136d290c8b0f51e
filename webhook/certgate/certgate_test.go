package certgate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

const service = "hostwarrant-webhook.hostwarrant-system.svc"

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// authority signs leaves.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: start.Add(-time.Hour), NotAfter: start.Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (a authority) leaf(t *testing.T, name string, until time.Time) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: start.Add(-time.Hour), NotAfter: until, DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func validating(bundles ...[]byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, b := range bundles {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: b}})
	}
	return c
}

func mutating(bundle []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{
		{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: bundle}},
	}}
}

// world is a gate with its surroundings.
type world struct {
	*Gate
	bundles *Bundles
	next    *tls.Certificate
	err     error
	now     time.Time
}

func newWorld(first *tls.Certificate) *world {
	w := &world{next: first, now: start}
	now := func() time.Time { return w.now }
	w.bundles = &Bundles{DNSName: service, Now: now}
	w.Gate = New(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return w.next, w.err }, w.bundles.Trust, now)
	return w
}

// serves fails the test unless the gate hands out want.
func (w *world) serves(t *testing.T, what string, want *tls.Certificate) {
	t.Helper()
	got, err := w.GetCertificate(nil)
	if err != nil || got != want {
		t.Fatalf("%s: another certificate is served (%v)", what, err)
	}
}

func TestANewCertificateWaitsUntilEveryBundleTrustsIt(t *testing.T) {
	oldCA, newCA := newAuthority(t), newAuthority(t)
	older, newer := oldCA.leaf(t, service, start.Add(100*time.Hour)), newCA.leaf(t, service, start.Add(100*time.Hour))
	both := bytes.Join([][]byte{newCA.pem, oldCA.pem}, nil)
	w := newWorld(older)
	w.bundles.see(validating(oldCA.pem, oldCA.pem))
	w.bundles.see(mutating(oldCA.pem))
	w.serves(t, "at first", older)
	if err := w.Ready(); err != nil {
		t.Errorf("not ready with a trusted certificate: %v", err)
	}

	w.next = newer
	w.now = w.now.Add(time.Hour)
	w.serves(t, "while no bundle trusts the new one", older)
	w.bundles.see(validating(both, oldCA.pem))
	w.bundles.see(mutating(both))
	w.now = w.now.Add(time.Hour)
	w.serves(t, "while one bundle does not", older)
	w.bundles.see(validating(both, both))
	w.serves(t, "when all do", older)
	w.now = w.now.Add(Settle - time.Nanosecond)
	w.serves(t, "before it has settled", older)
	w.now = w.now.Add(time.Nanosecond)
	w.serves(t, "when it has settled", newer)
	if err := w.Ready(); err != nil {
		t.Errorf("not ready after the change: %v", err)
	}
}

func TestSettlingStartsAgain(t *testing.T) {
	oldCA, newCA := newAuthority(t), newAuthority(t)
	older, newer := oldCA.leaf(t, service, start.Add(100*time.Hour)), newCA.leaf(t, service, start.Add(100*time.Hour))
	both := bytes.Join([][]byte{newCA.pem, oldCA.pem}, nil)
	w := newWorld(older)
	w.bundles.see(validating(both))
	w.serves(t, "at first", older)
	w.next = newer
	w.serves(t, "trusted, not settled", older)
	w.bundles.see(validating(oldCA.pem))
	w.serves(t, "trusted no more", older)
	w.bundles.see(validating(both))
	w.now = w.now.Add(Settle)
	w.serves(t, "trusted again, not settled", older)
	w.next = newCA.leaf(t, service, start.Add(100*time.Hour))
	w.now = w.now.Add(Settle)
	w.serves(t, "another one, not settled", older)
}

func TestWhatCannotBeWaitedForIsServed(t *testing.T) {
	oldCA, newCA := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		older *tls.Certificate
		after time.Duration
		see   []any
	}{
		"the former certificate expires": {oldCA.leaf(t, service, start.Add(time.Hour)), time.Hour, []any{validating(oldCA.pem)}},
		"no configuration is stored":     {oldCA.leaf(t, service, start.Add(time.Hour)), time.Minute, nil},
		"the former one is unreadable":   {&tls.Certificate{Certificate: [][]byte{[]byte("x")}}, 0, []any{validating(oldCA.pem)}},
		"the former one is empty":        {&tls.Certificate{}, 0, []any{validating(oldCA.pem)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.older)
			for _, o := range c.see {
				w.bundles.see(o)
			}
			w.serves(t, "at first", c.older)
			w.next = newCA.leaf(t, service, start.Add(100*time.Hour))
			w.now = w.now.Add(c.after)
			w.serves(t, "afterwards", w.next)
		})
	}
	t.Run("near miss: a moment before it expires", func(t *testing.T) {
		older := oldCA.leaf(t, service, start.Add(time.Hour))
		w := newWorld(older)
		w.bundles.see(validating(oldCA.pem))
		w.serves(t, "at first", older)
		w.next, w.now = newCA.leaf(t, service, start.Add(100*time.Hour)), start.Add(time.Hour-time.Second)
		w.serves(t, "a moment before", older)
	})
}

func TestASourceThatLostItsCertificate(t *testing.T) {
	ca := newAuthority(t)
	older := ca.leaf(t, service, start.Add(time.Hour))
	w := newWorld(nil)
	w.err = errors.New("lost")
	if _, err := w.GetCertificate(nil); err == nil {
		t.Error("a certificate out of nothing")
	}
	if err := w.Ready(); err == nil {
		t.Error("ready without a certificate")
	}
	w.next, w.err = older, nil
	w.serves(t, "there", older)
	w.err = errors.New("lost")
	w.serves(t, "lost", older)
	w.now = start.Add(time.Hour)
	if _, err := w.GetCertificate(nil); err == nil {
		t.Error("an expired certificate is served")
	}
}

func TestReadyFollowsTheBundles(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		leaf *tls.Certificate
		see  []any
		lost []any
		want Trust
	}{
		"trusted by all":                  {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(ca.pem), mutating(ca.pem)}, nil, Trusted},
		"not by the mutating half":        {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(ca.pem), mutating(other.pem)}, nil, Untrusted},
		"not by the second webhook":       {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(ca.pem, other.pem)}, nil, Untrusted},
		"a bundle is not filled":          {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(nil)}, nil, Untrusted},
		"another name":                    {ca.leaf(t, "other.svc", start.Add(time.Hour)), []any{validating(ca.pem)}, nil, Untrusted},
		"expired":                         {ca.leaf(t, service, start), []any{validating(ca.pem)}, nil, Untrusted},
		"unreadable":                      {&tls.Certificate{Certificate: [][]byte{[]byte("x")}}, []any{validating(ca.pem)}, nil, Untrusted},
		"no configuration":                {ca.leaf(t, service, start.Add(time.Hour)), nil, nil, Unknown},
		"both deleted":                    {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(other.pem), mutating(other.pem)}, []any{validating(), toolscache.DeletedFinalStateUnknown{Obj: mutating(nil)}}, Unknown},
		"the validating one deleted only": {ca.leaf(t, service, start.Add(time.Hour)), []any{validating(ca.pem), mutating(other.pem)}, []any{validating()}, Untrusted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.leaf)
			for _, o := range c.see {
				w.bundles.see(o)
			}
			for _, o := range c.lost {
				w.bundles.forget(o)
			}
			now := start.Add(time.Minute)
			w.now = now
			if got := w.bundles.Trust(c.leaf); got != c.want {
				t.Errorf("trust %d; want %d", got, c.want)
			}
			if err := w.Ready(); (err != nil) != (c.want == Untrusted) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}
