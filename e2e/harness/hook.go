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
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

const foreignNamespace = "default"

// hook is an admission webhook of somebody else, before it is configured for anything.
type hook struct {
	name   string
	cp     *lab.ControlPlane
	server *http.Server
	ended  chan error
	judge  func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)
}

// startHook starts one behind a Service of its name, and gives the CA of its certificate.
func startHook(ctx context.Context, cp *lab.ControlPlane, name string, judge func(*admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) (*hook, []byte, error) {
	addr, err := cp.ReachableAddr()
	if err != nil {
		return nil, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return nil, nil, fmt.Errorf("starting %s: %w", name, err)
	}
	certificate, ca, err := selfSigned(name + "." + foreignNamespace + ".svc")
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	h := &hook{name: name, cp: cp, judge: judge, ended: make(chan error, 1)}
	h.server = &http.Server{
		Handler: http.HandlerFunc(h.answer), ReadHeaderTimeout: time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
	}
	go func() { h.ended <- h.server.ServeTLS(listener, "", "") }()
	target, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	return h, ca, h.expose(ctx, target)
}

func (h *hook) expose(ctx context.Context, target netip.AddrPort) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: h.name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}
	if _, err := h.cp.Client().CoreV1().Services(foreignNamespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("exposing %s: %w", h.name, err)
	}
	return h.cp.ExposeWebhook(ctx, foreignNamespace, h.name, 443, target)
}

// close takes Service and server away.
func (h *hook) close(ctx context.Context) error {
	return errors.Join(gone(h.cp.Client().CoreV1().Services(foreignNamespace).Delete(ctx, h.name, metav1.DeleteOptions{})), h.server.Close(), h.end())
}

// end is how the server ended; being closed is no error.
func (h *hook) end() error {
	if err := <-h.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (h *hook) answer(w http.ResponseWriter, r *http.Request) {
	review := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	response, err := h.judge(review.Request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	response.UID = review.Request.UID
	review.Response, review.Request = response, nil
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
