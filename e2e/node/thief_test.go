//go:build linux

package node

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// TestAThiefIsFasterThanTheKubelet: a token is taken while its host's script runs, and used elsewhere, under the same
// name, before the host's own kubelet asks. The thief gets nothing, the run fails and says why, and the next one joins.
func TestAThiefIsFasterThanTheKubelet(t *testing.T) {
	w := newWorld(t)
	h := w.listed(t, "host-c")
	w.ask(t, "stolen", h, v1alpha1.HostRunJoin, "pool-3")
	value := w.handedOver(t, "stolen")
	w.Until(t, "stolen", limit, func(r *v1alpha1.HostRun) bool { // before, the run would end without its script
		return courier.ConditionOf(r, v1alpha1.ConditionDelivered).Status == metav1.ConditionUnknown
	})
	key, err := product.NewKubeletKey()
	must(t, err)
	request, err := product.AskCertificate(t.Context(), w.Bearer(t, value), "pool-3", key)
	must(t, err)

	if said := w.Decided(t, request.Name); !strings.HasPrefix(said, "Denied HostwarrantProofFailed: the request is for the key SHA256:") {
		t.Fatalf("the thief's request is %q", said)
	}
	w.Worthless(t, value)
	if c := courier.ConditionOf(w.Joined(t, "stolen", "ProofFailed"), v1alpha1.ConditionJoined); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, request.Name) {
		t.Errorf("Joined is %s: %s", c.Status, c.Message)
	}
	w.ended(t, "stolen", "ScriptFailed", 1, "kubelet did not get there")
	w.NoTokens(t)
	_, secret, _ := strings.Cut(value, ".")
	if left := h.Must(t, "pgrep -a kubelet || :; ls /etc/kubernetes/bootstrap-kubelet.conf 2>/dev/null || :; "+findSecret(secret)); left != "" {
		t.Errorf("the run that failed has left %s", left)
	}
	if _, err := w.client.CoreV1().Nodes().Get(t.Context(), "pool-3", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a node pool-3: %v", err)
	}
	w.joined(t, "next", h, "pool-3")
	stolen, err := w.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), request.Name, metav1.GetOptions{})
	must(t, err)
	if len(stolen.Status.Certificate) > 0 {
		t.Error("the thief has a certificate")
	}
}

// TestACopyOfTheKubeletsRequestIsNotApprovedInItsPlace: who holds the token hands in the kubelet's own request once more,
// by another name, as soon as it is there. Were that one approved, nothing would be stolen, and the kubelet would wait in vain.
func TestACopyOfTheKubeletsRequestIsNotApprovedInItsPlace(t *testing.T) {
	w := newWorld(t)
	h := w.listed(t, "host-d")
	w.ask(t, "copied", h, v1alpha1.HostRunJoin, "pool-4")
	value := w.handedOver(t, "copied")
	id, _, _ := strings.Cut(value, ".")
	thief := w.Bearer(t, value).CertificatesV1().CertificateSigningRequests()
	seen, err := thief.Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer seen.Stop()
	var original, imitation *certificatesv1.CertificateSigningRequest
	for event := range seen.ResultChan() {
		if csr, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && csr.Spec.Username == token.UserPrefix+id {
			original = csr
			break
		}
	}
	if original == nil {
		t.Fatal("the kubelet has not asked")
	}
	imitation, err = thief.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "a-copy"}, // before the other one, where names are sorted
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: original.Spec.Request, SignerName: original.Spec.SignerName, Usages: original.Spec.Usages},
	}, metav1.CreateOptions{})
	must(t, err)
	if name := (kubeletcsr.Request{PEM: original.Spec.Request}).OwnName(); name != original.Name {
		t.Errorf("the kubelet names its request %s, and not %s: %s", original.Name, name, original.Spec.Request)
	}

	r := w.ended(t, "copied", "Succeeded", 0, "host-d is the node pool-4\n")
	if c := courier.ConditionOf(r, v1alpha1.ConditionJoined); c.Reason != "Approved" || !strings.Contains(c.Message, original.Name) {
		t.Errorf("Joined is %s: %s", c.Reason, c.Message)
	}
	w.ready(t, "pool-4")
	copied, err := w.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), imitation.Name, metav1.GetOptions{})
	must(t, err)
	if len(copied.Status.Certificate) > 0 || len(copied.Status.Conditions) > 0 {
		t.Errorf("the copy is %+v", copied.Status)
	}
	if said := w.Kubectl(t, "-n", courier.Namespace, "get", "events", "--field-selector=reason=SecondRequest", "-o", "wide"); !strings.Contains(said, "somebody else holds the token") {
		t.Errorf("nobody is told of the copy: %s", said)
	}
	w.NoTokens(t)
}
