//go:build linux

package harness

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// PatchOperation is one step of a JSON patch (RFC 6902).
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Edit says what a foreign webhook changes of an object.
type Edit func(object map[string]any) []PatchOperation

// Foreign is somebody else's mutating webhook for SSHJoinProfiles and SSHHosts.
type Foreign struct {
	name   string
	cp     *lab.ControlPlane
	server *http.Server
	ended  chan error
	asked  atomic.Int64
	edit   Edit
}

const foreignNamespace = "default"

// StartForeign installs one under the given name, which decides whether it is asked before or after
// others: the API server goes by the names of the configurations.
func StartForeign(ctx context.Context, cp *lab.ControlPlane, name string, edit Edit) (*Foreign, error) {
	addr, err := cp.ReachableAddr()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	certificate, ca, err := selfSigned(name + "." + foreignNamespace + ".svc")
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	f := &Foreign{name: name, cp: cp, edit: edit, ended: make(chan error, 1)}
	f.server = &http.Server{
		Handler: http.HandlerFunc(f.answer), ReadHeaderTimeout: time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
	}
	go func() { f.ended <- f.server.ServeTLS(listener, "", "") }()
	target, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	return f, errors.Join(f.expose(ctx, target), f.configure(ctx, ca))
}

// Asked is how often it was called.
func (f *Foreign) Asked() int64 { return f.asked.Load() }

// Close takes configuration, Service and server away.
func (f *Foreign) Close(ctx context.Context) error {
	gone := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	client := f.cp.Client()
	return errors.Join(
		gone(client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, f.name, metav1.DeleteOptions{})),
		gone(client.CoreV1().Services(foreignNamespace).Delete(ctx, f.name, metav1.DeleteOptions{})),
		f.server.Close(),
		f.end(),
	)
}

// end is how the server ended; being closed is no error.
func (f *Foreign) end() error {
	if err := <-f.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (f *Foreign) expose(ctx context.Context, target netip.AddrPort) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}
	if _, err := f.cp.Client().CoreV1().Services(foreignNamespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("exposing %s: %w", f.name, err)
	}
	return f.cp.ExposeWebhook(ctx, foreignNamespace, f.name, 443, target)
}

func (f *Foreign) configure(ctx context.Context, ca []byte) error {
	none, fail, again := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail, admissionregistrationv1.IfNeededReinvocationPolicy
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: f.name + ".example.com", SideEffects: &none, FailurePolicy: &fail, ReinvocationPolicy: &again, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionregistrationv1.ServiceReference{Namespace: foreignNamespace, Name: f.name},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{Profiles().Group}, APIVersions: []string{"*"}, Resources: []string{Profiles().Resource, Hosts().Resource},
				},
			}},
		}},
	}
	_, err := f.cp.Client().AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
	return err
}

func (f *Foreign) answer(w http.ResponseWriter, r *http.Request) {
	review := admissionv1.AdmissionReview{}
	object := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil {
		http.Error(w, "no object", http.StatusBadRequest)
		return
	}
	f.asked.Add(1)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if operations := f.edit(object); len(operations) > 0 {
		patch, err := json.Marshal(operations)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.Patch, review.Response.PatchType = patch, &kind
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(http.ErrAbortHandler) // the API server sees a cut answer by itself
	}
}

// selfSigned makes a certificate that is its own authority.
func selfSigned(name string) (certificate tls.Certificate, ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate, nil, err
	}
	certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
