package cabundle

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

var clock = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// issued makes a self-signed certificate with dates.
func issued(t *testing.T, isCA bool, from, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IsCA: isCA, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func join(parts ...[]byte) string { return string(bytes.Join(parts, nil)) }

func TestTheFormerCAStaysForAWhile(t *testing.T) {
	year := clock.Add(365 * 24 * time.Hour)
	old, older, oldest := issued(t, true, clock, year), issued(t, true, clock, year), issued(t, true, clock, year)
	ca := issued(t, true, clock, year)
	for name, c := range map[string]struct {
		live  string
		since time.Duration // from the issue to now
		want  string
	}{
		"first fill":                      {"", 0, join(ca)},
		"a change":                        {join(old), 0, join(ca, old)},
		"the last moment":                 {join(ca, old), Overlap - time.Nanosecond, join(ca, old)},
		"the overlap is over":             {join(ca, old), Overlap, join(ca)},
		"two changes in a day":            {join(old, older), time.Hour, join(ca, old, older)},
		"three changes in a day":          {join(old, older, oldest), time.Hour, join(ca, old, older)},
		"nothing changed":                 {join(ca), time.Hour, join(ca)},
		"the former CA was taken out":     {join(ca), time.Minute, join(ca)},
		"the former CA has expired":       {join(issued(t, true, clock.Add(-time.Hour), clock)), 0, join(ca)},
		"near miss: it expires in 1 s":    {join(issued(t, true, clock.Add(-time.Hour), clock.Add(time.Second))), time.Second - 1, ""},
		"what is no CA does not stay":     {join(issued(t, false, clock, year)), 0, join(ca)},
		"what is no certificate neither":  {join([]byte("hello"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), 0, join(ca)},
		"a change with no final newline":  {string(bytes.TrimSpace(old)), 0, join(ca, old)},
		"a key beside it does not follow": {join(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), old), 0, join(ca, old)},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(bundle([]byte(c.live), ca, clock.Add(-c.since), clock))
			if c.want == "" { // both are there
				c.want = join(ca, []byte(c.live))
			}
			if got != c.want {
				t.Errorf("%d certificates; want %d", bytes.Count([]byte(got), []byte("BEGIN")), bytes.Count([]byte(c.want), []byte("BEGIN")))
			}
		})
	}
}

func TestReconcileBridgesAChangeAndEndsIt(t *testing.T) {
	year := clock.Add(365 * 24 * time.Hour)
	ca, old := issued(t, true, clock, year), issued(t, true, clock.Add(-time.Hour), year)
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(append(configurations(ConfigurationName, old), secret(ca))...).Build()
	now := clock
	r := &Reconciler{Client: c, Secret: secretName, Now: func() time.Time { return now }}
	check := func(want string, again time.Duration) {
		t.Helper()
		result, err := r.Reconcile(context.Background(), reconcile.Request{})
		if err != nil || result.RequeueAfter != again {
			t.Fatalf("%+v, %v; want another look after %s", result, err, again)
		}
		var v admissionregistrationv1.ValidatingWebhookConfiguration
		var m admissionregistrationv1.MutatingWebhookConfiguration
		if err := c.Get(context.Background(), types.NamespacedName{Name: ConfigurationName}, &v); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(context.Background(), types.NamespacedName{Name: ConfigurationName}, &m); err != nil {
			t.Fatal(err)
		}
		for _, got := range [][]byte{v.Webhooks[0].ClientConfig.CABundle, v.Webhooks[1].ClientConfig.CABundle, m.Webhooks[0].ClientConfig.CABundle} {
			if string(got) != want {
				t.Errorf("%d certificates", bytes.Count(got, []byte("BEGIN")))
			}
		}
	}
	check(join(ca, old), Overlap)
	now = clock.Add(time.Hour)
	check(join(ca, old), Overlap-time.Hour)
	now = clock.Add(Overlap)
	check(join(ca), 0)
}

func TestIssuedAtOfWhatIsNoCertificate(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "text": "hello", "not a certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))} {
		if got := issuedAt([]byte(text)); !got.IsZero() {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := issuedAt(issued(t, true, clock, clock.Add(time.Hour))); !got.Equal(clock) {
		t.Errorf("%s", got)
	}
}
