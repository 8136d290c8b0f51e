package certgate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bundles knows the caBundle of every webhook of the two configurations of one name, as stored.
type Bundles struct {
	// Name of both configurations, and the DNS name by which the API server calls the webhook.
	Name, DNSName string
	// Config and Scheme are for a cache of these two objects alone.
	Config *rest.Config
	Scheme *runtime.Scheme
	Now    func() time.Time

	mu                   sync.RWMutex
	validating, mutating [][]byte
}

// Start watches both configurations until ctx ends. Where they may not be read it goes on trying, and
// Trust stays Unknown: a missing right must not hold up a renewal.
func (b *Bundles) Start(ctx context.Context) error {
	named := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", b.Name)}
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	c, err := cache.New(b.Config, cache.Options{Scheme: b.Scheme, ByObject: map[client.Object]cache.ByObject{validating: named, mutating: named}})
	if err != nil {
		return fmt.Errorf("watching the webhook configurations: %w", err)
	}
	handlers := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    b.see,
		UpdateFunc: func(_, o any) { b.see(o) },
		DeleteFunc: b.forget,
	}
	for _, o := range []client.Object{validating, mutating} {
		informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching the webhook configurations: %w", err)
		}
		if _, err := informer.AddEventHandler(handlers); err != nil {
			return fmt.Errorf("watching the webhook configurations: %w", err)
		}
	}
	return c.Start(ctx)
}

// NeedLeaderElection is false: every replica serves.
func (b *Bundles) NeedLeaderElection() bool { return false }

func (b *Bundles) see(o any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch c := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		b.validating = nil
		for _, w := range c.Webhooks {
			b.validating = append(b.validating, w.ClientConfig.CABundle)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		b.mutating = nil
		for _, w := range c.Webhooks {
			b.mutating = append(b.mutating, w.ClientConfig.CABundle)
		}
	}
}

func (b *Bundles) forget(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		b.validating = nil
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		b.mutating = nil
	}
}

// Trust says whether every caBundle verifies the certificate.
func (b *Bundles) Trust(c *tls.Certificate) Trust {
	b.mu.RLock()
	bundles := append(append([][]byte{}, b.validating...), b.mutating...)
	b.mu.RUnlock()
	if len(bundles) == 0 {
		return Unknown
	}
	leaf, err := leafOf(c)
	if err != nil {
		return Untrusted
	}
	intermediates := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		if i, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(i)
		}
	}
	for _, bundle := range bundles {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			return Untrusted // not filled yet
		}
		o := x509.VerifyOptions{DNSName: b.DNSName, Roots: roots, Intermediates: intermediates, CurrentTime: b.Now()}
		if _, err := leaf.Verify(o); err != nil {
			return Untrusted
		}
	}
	return Trusted
}
