//go:build linux

package lab_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// TestWebhookIsReachedThroughItsService is the way the product's webhook is reached: Service without selector,
// EndpointSlice to the bridge, the name of the Service in the certificate.
func TestWebhookIsReachedThroughItsService(t *testing.T) {
	cp := shared.ControlPlane(t)
	ctx := t.Context()
	target, ca := startRefuser(t, cp, "hook.default.svc")
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}
	if _, err := cp.Client().CoreV1().Services("default").Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := cp.ExposeWebhook(ctx, "default", "hook", 443, target); err != nil {
		t.Fatal(err)
	}
	configure(t, cp, ca)
	eventually(t, func() string {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "judged"}}
		_, err := cp.Client().CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "denied the request: the lab says no") {
			return ""
		}
		return fmt.Sprintf("the webhook was not asked; last answer: %v", err)
	})
}

func configure(t *testing.T, cp *lab.ControlPlane, ca []byte) {
	t.Helper()
	none := admissionregistrationv1.SideEffectClassNone
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "lab"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "lab.hostwarrant.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hook"},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "judged", Expression: `object.metadata.name == "judged"`}},
		}},
	}
	configs := cp.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := configs.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// startRefuser serves a webhook that refuses everything, on the lab's bridge.
func startRefuser(t *testing.T, cp *lab.ControlPlane, name string) (netip.AddrPort, []byte) {
	t.Helper()
	addr, err := cp.ReachableAddr()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = ln
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return netip.MustParseAddrPort(ln.Addr().String()), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "the lab says no"}}
	if err := json.NewEncoder(w).Encode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
