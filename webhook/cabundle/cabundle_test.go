package cabundle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// certificate makes a self-signed certificate.
func certificate(t *testing.T, isCA bool) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: isCA, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var secretName = types.NamespacedName{Namespace: "hostwarrant-system", Name: "hostwarrant-webhook-ca"}

func secret(ca []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name},
		Data:       map[string][]byte{"ca.crt": ca, "tls.crt": ca, "tls.key": []byte("x")},
	}
}

// configurations have two webhooks in the validating half and one in the mutating.
func configurations(name string, bundle []byte) []client.Object {
	url := "https://hostwarrant-webhook.hostwarrant-system.svc/validate"
	c := admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	return []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kept": "yes"}},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "a.example.com", ClientConfig: c}, {Name: "b.example.com", ClientConfig: c}},
		},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "c.example.com", ClientConfig: c}},
		},
	}
}

// bundles reconciles once and returns the three caBundles afterwards, and the error.
func bundles(t *testing.T, name string, objects ...client.Object) ([]string, error) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	r := &Reconciler{Client: c, Secret: secretName, Now: time.Now}
	_, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: secretName})
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	var m admissionregistrationv1.MutatingWebhookConfiguration
	for _, o := range []client.Object{&v, &m} {
		if err := c.Get(context.Background(), types.NamespacedName{Name: name}, o); err != nil {
			t.Fatal(err)
		}
	}
	if v.Labels["kept"] != "yes" {
		t.Error("something else than caBundle was changed")
	}
	return []string{string(v.Webhooks[0].ClientConfig.CABundle), string(v.Webhooks[1].ClientConfig.CABundle), string(m.Webhooks[0].ClientConfig.CABundle)}, err
}

func TestCABundlesFollowTheSecret(t *testing.T) {
	ca, old := certificate(t, true), certificate(t, true)
	for name, c := range map[string]struct {
		configuration string
		secret        []byte
		want          string
		fails         bool
	}{
		"a CA":                              {ConfigurationName, ca, string(ca), false},
		"the same CA":                       {ConfigurationName, old, string(old), false},
		"another configuration":             {"other", ca, string(old), false},
		"a Secret that is not filled":       {ConfigurationName, nil, string(old), false},
		"no certificate":                    {ConfigurationName, []byte("hello"), string(old), true},
		"a certificate that is no CA's":     {ConfigurationName, certificate(t, false), string(old), true},
		"a CA with something after it":      {ConfigurationName, append(append([]byte{}, ca...), old...), string(old), true},
		"a block that holds no certificate": {ConfigurationName, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), string(old), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bundles(t, c.configuration, append(configurations(c.configuration, old), secret(c.secret))...)
			if (err != nil) != c.fails || c.fails && !errors.Is(err, reconcile.TerminalError(nil)) {
				t.Fatalf("%v; want an error for good: %v", err, c.fails)
			}
			for i, bundle := range got {
				if bundle != c.want {
					t.Errorf("caBundle %d is not the expected one", i)
				}
			}
		})
	}
	t.Run("no Secret", func(t *testing.T) {
		got, err := bundles(t, ConfigurationName, configurations(ConfigurationName, old)...)
		if err != nil || got[0] != string(old) {
			t.Fatalf("%v, %q", err, got[0])
		}
	})
	t.Run("no configuration", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(secret(ca)).Build()
		if _, err := (&Reconciler{Client: c, Secret: secretName, Now: time.Now}).Reconcile(context.Background(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	})
}
