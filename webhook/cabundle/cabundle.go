package cabundle

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ConfigurationName is the name of both webhook configurations.
const ConfigurationName = "hostwarrant"

// Reconciler compares Secret and configurations, and writes caBundle where it differs.
type Reconciler struct {
	Client client.Client
	// Secret holds the CA.
	Secret types.NamespacedName
	// Now is the clock.
	Now func() time.Time
}

// SetupWithManager watches the Secret and both configurations; any change leads to one reconciliation.
func (r *Reconciler) SetupWithManager(m manager.Manager) error {
	same := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.Secret}}
	})
	return builder.ControllerManagedBy(m).Named("cabundle").
		Watches(&corev1.Secret{}, same).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, same).
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, same).
		Complete(r)
}

// Reconcile writes the CA into both configurations.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := r.Client.Get(ctx, r.Secret, &secret); err != nil {
		// Without the Secret the replicas go on serving with what they hold in memory.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ca := secret.Data[corev1.ServiceAccountRootCAKey]
	if len(ca) == 0 {
		return reconcile.Result{}, nil // not filled yet; the write wakes us
	}
	if err := checkCA(ca); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("secret %s: %v", r.Secret, err))
	}
	now, issued := r.Now(), issuedAt(secret.Data[corev1.TLSCertKey])
	want := func(live []byte) []byte { return bundle(live, ca, issued, now) }
	if err := r.validating(ctx, want); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.mutating(ctx, want); err != nil {
		return reconcile.Result{}, err
	}
	// When the overlap ends the former CA goes.
	return reconcile.Result{RequeueAfter: max(0, issued.Add(Overlap).Sub(now))}, nil
}

func (r *Reconciler) validating(ctx context.Context, want func(live []byte) []byte) error {
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := r.Client.Get(ctx, types.NamespacedName{Name: ConfigurationName}, &c); err != nil {
		return client.IgnoreNotFound(err)
	}
	var steps []step
	for i, w := range c.Webhooks {
		steps = append(steps, change(i, w.Name, w.ClientConfig.CABundle, want(w.ClientConfig.CABundle))...)
	}
	return r.patch(ctx, &c, steps)
}

func (r *Reconciler) mutating(ctx context.Context, want func(live []byte) []byte) error {
	var c admissionregistrationv1.MutatingWebhookConfiguration
	if err := r.Client.Get(ctx, types.NamespacedName{Name: ConfigurationName}, &c); err != nil {
		return client.IgnoreNotFound(err)
	}
	var steps []step
	for i, w := range c.Webhooks {
		steps = append(steps, change(i, w.Name, w.ClientConfig.CABundle, want(w.ClientConfig.CABundle))...)
	}
	return r.patch(ctx, &c, steps)
}

// step is one operation of a JSON patch (RFC 6902).
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// change sets the caBundle of the i-th webhook, if that is still the one called name.
func change(i int, name string, have, want []byte) []step {
	if bytes.Equal(have, want) {
		return nil
	}
	at := fmt.Sprintf("/webhooks/%d", i)
	return []step{
		{Op: "test", Path: at + "/name", Value: name},
		{Op: "add", Path: at + "/clientConfig/caBundle", Value: want},
	}
}

func (r *Reconciler) patch(ctx context.Context, o client.Object, steps []step) error {
	if len(steps) == 0 {
		return nil
	}
	body, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, body))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// checkCA wants exactly one PEM certificate, of a CA: anything else would lock the API server out.
func checkCA(text []byte) error {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("ca.crt is not one PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fmt.Errorf("ca.crt: %v", err)
	}
	if !cert.IsCA {
		return fmt.Errorf("ca.crt is not the certificate of a CA")
	}
	return nil
}
