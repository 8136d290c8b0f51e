//go:build linux

package join

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// kubeletKey is where the kubelet of a host keeps the key that it waits with.
const kubeletKey = "/root/kubelet-client.key.tmp"

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := product.NewKubeletKey()
	must(t, err)
	return key
}

// waitsWith puts a kubelet's pending key onto a host.
func waitsWith(t *testing.T, h *lab.Host, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	must(t, h.WriteFile(kubeletKey, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
}

// provable is a host whose shim knows its kubelet's key, and whose own key is listed.
func (w *world) provable(t *testing.T, name string) *lab.Host {
	t.Helper()
	return w.ProvableHost(t, name, kubeletKey)
}

// asks makes the request of a kubelet of that name.
func asks(t *testing.T, c kubernetes.Interface, node string, key *ecdsa.PrivateKey) string {
	t.Helper()
	csr, err := product.AskCertificate(t.Context(), c, node, key)
	must(t, err)
	return csr.Name
}

// decided waits until somebody has decided about a request, and gives "Type Reason: message".
func (w *world) decided(t *testing.T, name string) string {
	t.Helper()
	return w.Decided(t, name)
}

// issued waits for the certificate of a request.
func (w *world) issued(t *testing.T, name string) []byte {
	t.Helper()
	var certificate []byte
	testkit.Eventually(t, stepLimit, "the certificate of "+name, func() bool {
		csr := w.Request(t, name)
		certificate = csr.Status.Certificate
		return len(certificate) > 0
	})
	return certificate
}

// node is a client with a kubelet's certificate.
func (w *world) node(t *testing.T, certificate []byte, key *ecdsa.PrivateKey) kubernetes.Interface {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	config := rest.AnonymousClientConfig(w.ControlPlane.RESTConfig())
	config.CertData, config.KeyData = certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	return c
}

// A host's own kubelet joins, and whoever steals its token does not.
func TestAStolenTokenIsDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.provable(t, "host-a")
	own := newKey(t)
	waitsWith(t, h, own)
	renewal := ""
	t.Run("the host's own kubelet", func(t *testing.T) { renewal = w.ownKubelet(t, h, own) })
	t.Run("used first by another machine, under the same name", func(t *testing.T) {
		w.theft(t, h, "same", "pool-1", "Denied HostwarrantProofFailed: the request is for the key SHA256:", "ProofFailed")
	})
	t.Run("used first by another machine, under another name", func(t *testing.T) {
		w.theft(t, h, "other", "pool-2", `Denied HostwarrantCSRMismatch: the request is for "system:node:pool-2"`, "CSRMismatch")
	})
	t.Run("approved by somebody else", func(t *testing.T) { w.approvedElsewhere(t, h) })
	t.Run("proved by a key that the relay alone pins", func(t *testing.T) { w.pinnedAlone(t, h, own) })
	csr := w.Request(t, renewal)
	for _, c := range csr.Status.Conditions {
		if c.Reason != "AutoApproved" {
			t.Errorf("the kubelet's renewal is %s %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	t.Run("with proofs switched off, under the same name", func(t *testing.T) {
		must(t, w.minter.Stop())
		w.flags = []string{"--proof=off"}
		w.startMinter(t)
		w.join(t, "off", "host-a", "pool-1")
		value := w.running(t, "off", h)
		name := asks(t, w.bearer(t, value), "pool-1", newKey(t))
		if said := w.decided(t, name); !strings.HasPrefix(said, "Approved HostwarrantProofSkipped: nobody proved that SHA256:") {
			t.Errorf("the thief's request is %q", said)
		}
		w.finish(t, h, "off", value)
	})
}

// finish lets a run's script end, and wants nothing left of its token.
func (w *world) finish(t *testing.T, h *lab.Host, run, value string) {
	t.Helper()
	goOn(t, h)
	w.Until(t, run, stepLimit, courier.IsOver)
	w.refused(t, value)
	w.nothingLeft(t)
	w.remove(t, run)
}

func (w *world) ownKubelet(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey) (renewal string) {
	w.join(t, "own", "host-a", "pool-1")
	value := w.running(t, "own", h)
	name := asks(t, w.bearer(t, value), "pool-1", own)
	if said := w.decided(t, name); !strings.HasPrefix(said, "Approved HostwarrantApproved: the host proved that SHA256:") {
		t.Fatalf("the request is %q; the minter says\n%s", said, w.minter.Tail(20))
	}
	node := w.node(t, w.issued(t, name), own)
	renewal = asks(t, node, "pool-1", newKey(t))
	r := w.Read(t, "own")
	if c := courier.ConditionOf(r, v1alpha1.ConditionJoined); c.Status != metav1.ConditionTrue || c.Reason != "Approved" || r.Status.Proof == nil || !strings.Contains(r.Status.Proof.Text, "\nkubelet-key SHA256:") {
		t.Errorf("the run says %+v, %+v", c, r.Status.Proof)
	}
	w.finish(t, h, "own", value)
	return renewal
}

// theft is a request with the run's token by a machine that is not its host.
func (w *world) theft(t *testing.T, h *lab.Host, run, node, want, reason string) {
	w.join(t, run, "host-a", "pool-1")
	value := w.running(t, run, h)
	name := asks(t, w.bearer(t, value), node, newKey(t))
	if said := w.decided(t, name); !strings.HasPrefix(said, want) {
		t.Errorf("the thief's request is %q, want %q", said, want)
	}
	w.refused(t, value)
	if c := courier.ConditionOf(w.joined(t, run, reason), v1alpha1.ConditionJoined); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, name) {
		t.Errorf("Joined is %s: %s", c.Status, c.Message)
	}
	w.finish(t, h, run, value)
}

func (w *world) approvedElsewhere(t *testing.T, h *lab.Host) {
	w.join(t, "elsewhere", "host-a", "pool-1")
	value := w.running(t, "elsewhere", h)
	must(t, w.minter.Kill()) // so that the other one is first
	name := asks(t, w.bearer(t, value), "pool-1", newKey(t))
	w.kubectl(t, "certificate", "approve", name)
	w.startMinter(t)
	w.refused(t, value)
	if c := courier.ConditionOf(w.joined(t, "elsewhere", "ForeignApproval"), v1alpha1.ConditionJoined); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, name) {
		t.Errorf("Joined is %s: %s", c.Status, c.Message)
	}
	if log := w.minter.Tail(50); !strings.Contains(log, "ALARM: the request was approved by somebody else") {
		t.Errorf("the minter says\n%s", log)
	}
	w.finish(t, h, "elsewhere", value)
}

// pinnedAlone: a host whose key changed, as far as the one who writes its Secret says, is not dialled; and what it
// signs by that key proves nothing.
func (w *world) pinnedAlone(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey) {
	w.join(t, "pinned", "host-a", "pool-1")
	value := w.running(t, "pinned", h)
	listed := testkit.NewSigner(t, "ed25519")
	w.ListHostKey(t, "host-a", listed.PublicKey())
	name := asks(t, w.bearer(t, value), "pool-1", own)
	testkit.Eventually(t, stepLimit, "the relay to see that its pin is disputed", func() bool {
		return strings.Contains(w.Programs.Relay.Tail(50), "which is neither the policy's hostCA")
	})
	csr := w.Request(t, name)
	if len(csr.Status.Conditions) > 0 {
		t.Errorf("the request is %+v", csr.Status.Conditions)
	}
	w.finish(t, h, "pinned", value)
	w.ListHostKey(t, "host-a", h.HostKey)
}
