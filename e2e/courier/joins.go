//go:build linux

package courier

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// BindBootstrappers lets the bearers of our tokens ask for certificates.
func (w *World) BindBootstrappers(t testing.TB) {
	t.Helper()
	must(t, w.Product.BindBootstrappers(t.Context()))
}

// StartMinter starts minter and approver, with flags added to the usual ones, and returns when they are ready.
func (w *World) StartMinter(t testing.TB, flags ...string) {
	t.Helper()
	var err error
	w.Programs.Minter, err = w.Product.StartMinterAs(t.Context(), "hostwarrant-minter", flags...)
	must(t, err)
	must(t, w.Programs.Minter.Wait(t.Context(), "/readyz"))
}

// ListHostKey writes a host's key where the approver looks for it.
func (w *World) ListHostKey(t testing.TB, name string, key ssh.PublicKey) {
	t.Helper()
	must(t, w.Product.ListHostKey(t.Context(), Namespace, name, key))
}

// ProvableHost is a host whose shim knows where its kubelet keeps the key that it waits with, and whose own key is listed.
func (w *World) ProvableHost(t testing.TB, name, kubeletKey string) *lab.Host {
	t.Helper()
	h := w.HostWith(t, name, func(o *lab.HostOptions) { o.ShimConf += "kubelet-key=" + kubeletKey + "\n" })
	w.ListHostKey(t, name, h.HostKey)
	return h
}

// Joined waits until the minter has said that of a run.
func (w *World) Joined(t testing.TB, name, reason string) *v1alpha1.HostRun {
	t.Helper()
	return w.Until(t, name, stepLimit, func(r *v1alpha1.HostRun) bool {
		return ConditionOf(r, v1alpha1.ConditionJoined).Reason == reason
	})
}

// Bearer is a client of whoever holds a token.
func (w *World) Bearer(t testing.TB, value string) kubernetes.Interface {
	t.Helper()
	c, err := product.Bearer(w.ControlPlane, value)
	must(t, err)
	return c
}

// Worthless waits until the API server knows a token no more.
func (w *World) Worthless(t testing.TB, value string) {
	t.Helper()
	bearer := w.Bearer(t, value)
	testkit.Eventually(t, stepLimit, "the token to be worth nothing", func() bool {
		_, err := bearer.Discovery().ServerVersion()
		return apierrors.IsUnauthorized(err)
	})
}

// Tokens are the Secrets of tokens of ours that are there, in kube-system and with the hosts.
func (w *World) Tokens(t testing.TB) []string {
	t.Helper()
	var found []string
	for _, ns := range []string{metav1.NamespaceSystem, Namespace} {
		all, err := w.ControlPlane.Client().CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, s := range all.Items {
			if s.Type == corev1.SecretTypeBootstrapToken || token.IsHandover(s.Name) {
				found = append(found, s.Namespace+"/"+s.Name)
			}
		}
	}
	return found
}

// NoTokens waits until no token is left, nor anything that holds a run.
func (w *World) NoTokens(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, stepLimit, "no token to be left", func() bool {
		var runs v1alpha1.HostRunList
		must(t, w.Client.List(t.Context(), &runs))
		for _, r := range runs.Items {
			if len(r.Finalizers) > 0 {
				return false
			}
		}
		return len(w.Tokens(t)) == 0
	})
}

// Request reads a certificate request.
func (w *World) Request(t testing.TB, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr, err := w.ControlPlane.Client().CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return csr
}

// Decided waits until somebody has decided about a request, and gives "Type Reason: message".
func (w *World) Decided(t testing.TB, name string) string {
	t.Helper()
	said := ""
	testkit.Eventually(t, stepLimit, "a word on "+name, func() bool {
		csr := w.Request(t, name)
		for _, c := range csr.Status.Conditions {
			said = string(c.Type) + " " + c.Reason + ": " + c.Message
		}
		return said != ""
	})
	return said
}

// Kubectl must succeed.
func (w *World) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, args...)
	must(t, err)
	if r.Code != 0 {
		t.Fatalf("kubectl %s: exit %d: %s", strings.Join(args, " "), r.Code, r.Stderr)
	}
	return r.Stdout
}
