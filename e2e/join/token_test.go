//go:build linux

package join

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// bearer is a client of whoever holds a token.
func (w *world) bearer(t *testing.T, value string) kubernetes.Interface {
	t.Helper()
	return w.Bearer(t, value)
}

// request makes a kubelet's request for a client certificate.
func request(t *testing.T, c kubernetes.Interface, node string) (*certificatesv1.CertificateSigningRequest, error) {
	t.Helper()
	return product.AskCertificate(t.Context(), c, node, newKey(t))
}

// refused waits until the API server knows a token no more.
func (w *world) refused(t *testing.T, value string) {
	t.Helper()
	w.Worthless(t, value)
}

func (w *world) registers(t *testing.T, node, providerID string) {
	t.Helper()
	_, err := w.ControlPlane.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.NodeSpec{ProviderID: providerID}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, w.ControlPlane.Client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), node, metav1.DeleteOptions{}))
	})
}

// From the first word to the last of a token, and of minters and relays that die on the way.
func TestTokensOfJoins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--proof=off") // these hosts have no kubelet
	h := w.Host(t, "host-a")
	t.Run("a token goes to its host and asks for one certificate", func(t *testing.T) { w.oneJoin(t, h) })
	t.Run("a run that ends leaves no token", func(t *testing.T) { w.endsWithItsRun(t, h) })
	t.Run("a run that is deleted leaves no token", func(t *testing.T) { w.deleted(t, h) })
	t.Run("a minter that is killed is followed by another", func(t *testing.T) { w.killedMinter(t, h) })
	t.Run("two minters", func(t *testing.T) { w.twoMinters(t, h) })
	t.Run("a relay that is killed between token and host", func(t *testing.T) { w.killedRelay(t, h) })
	t.Run("a token that nobody takes back ends by itself", func(t *testing.T) { w.endsByItself(t, h) })
}

func (w *world) oneJoin(t *testing.T, h *lab.Host) {
	w.join(t, "one", "host-a", "pool-1")
	value := w.running(t, "one", h)
	id, secret, _ := strings.Cut(value, ".")
	s, err := w.ControlPlane.Client().CoreV1().Secrets(metav1.NamespaceSystem).Get(t.Context(), token.BootstrapName(id), metav1.GetOptions{})
	must(t, err)
	end, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
	must(t, err)
	if left := time.Until(end); left <= 0 || left > 10*time.Minute {
		t.Errorf("the token ends in %s", left)
	}
	csr, err := request(t, w.bearer(t, value), "pool-1")
	must(t, err)
	groups := []string{token.Group, token.Bootstrappers, "system:authenticated"}
	slices.Sort(groups)
	if got := slices.Sorted(slices.Values(csr.Spec.Groups)); csr.Spec.Username != token.UserPrefix+id || !slices.Equal(got, groups) {
		t.Errorf("the request is of %s, in %v", csr.Spec.Username, got)
	}
	if _, err := w.bearer(t, value).CoreV1().Secrets(pool).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the token's bearer reads Secrets: %v", err)
	}
	w.registers(t, "pool-1", "kpssh://"+pool+"/host-a")
	w.refused(t, value)
	w.nothingLeft(t)
	goOn(t, h)
	r := w.Ended(t, "one", "Succeeded", 0, 0)
	if c := courier.ConditionOf(r, v1alpha1.ConditionJoined); c.Status != metav1.ConditionTrue {
		t.Errorf("Joined is %s, %s: %s", c.Status, c.Reason, c.Message)
	}
	if !strings.Contains(r.Status.TranscriptTail, "[redacted]") || strings.Contains(fmt.Sprint(r), secret) {
		t.Errorf("the run shows the token: %s", r.Status.TranscriptTail)
	}
	if said := w.minter.Tail(1000) + w.Programs.Relay.Tail(1000) + w.kubectl(t, "get", "events", "-A", "-o", "yaml"); strings.Contains(said, secret) {
		t.Error("a log or an event shows the token")
	}
	if ran(t, h) != 1 {
		t.Errorf("the script ran %d times", ran(t, h))
	}
	w.remove(t, "one")
}

func (w *world) endsWithItsRun(t *testing.T, h *lab.Host) {
	w.join(t, "ends", "host-a", "pool-1")
	value := w.running(t, "ends", h)
	goOn(t, h)
	w.Ended(t, "ends", "Succeeded", 0, 0)
	w.refused(t, value)
	w.joined(t, "ends", token.RunEnded)
	w.nothingLeft(t)
	w.remove(t, "ends")
}

func (w *world) deleted(t *testing.T, h *lab.Host) {
	w.join(t, "deleted", "host-a", "pool-1")
	value := w.running(t, "deleted", h)
	w.kubectl(t, "-n", pool, "delete", "hostrun", "deleted", "--wait=false")
	w.refused(t, value)
	w.nothingLeft(t)
	goOn(t, h)
	testkit.Eventually(t, stepLimit, "the script to end", func() bool {
		_, err := h.ReadFile("/root/go")
		return err != nil
	})
}

func (w *world) killedMinter(t *testing.T, h *lab.Host) {
	w.join(t, "killed", "host-a", "pool-1")
	value := w.running(t, "killed", h)
	must(t, w.minter.Kill())
	w.startMinter(t)
	id, _, _ := strings.Cut(value, ".")
	if got := w.tokens(t); len(got) != 2 || !slices.Contains(got, "kube-system/"+token.BootstrapName(id)) {
		t.Errorf("tokens %v, want %s alone", got, id)
	}
	must(t, w.minter.Kill())
	goOn(t, h)
	w.Ended(t, "killed", "Succeeded", 0, 0)
	if len(w.tokens(t)) != 2 {
		t.Error("somebody else took the token away")
	}
	w.startMinter(t)
	w.refused(t, value)
	w.nothingLeft(t)
	w.remove(t, "killed")
}

func (w *world) twoMinters(t *testing.T, h *lab.Host) {
	second, err := w.Product.StartMinterAs(t.Context(), "hostwarrant-minter-2", w.flags...)
	must(t, err)
	// Without an election both work at once: what keeps them apart is the API server alone.
	third, err := w.Product.StartMinterAs(t.Context(), "hostwarrant-minter-3", append(w.flags, "--leader-elect=false")...)
	must(t, err)
	w.join(t, "two", "host-a", "pool-1")
	w.running(t, "two", h)
	goOn(t, h)
	w.Ended(t, "two", "Succeeded", 0, 0)
	must(t, third.Stop())
	must(t, second.Stop())
	w.nothingLeft(t)
	w.remove(t, "two")
}

func (w *world) killedRelay(t *testing.T, h *lab.Host) {
	before := ran(t, h)
	must(t, w.minter.Kill())
	w.join(t, "relay", "host-a", "pool-1")
	w.Until(t, "relay", stepLimit, func(r *v1alpha1.HostRun) bool {
		return courier.ConditionOf(r, v1alpha1.ConditionDelivered).Reason == token.Pending
	})
	must(t, w.Programs.Relay.Kill())
	w.startMinter(t)
	w.joined(t, "relay", token.Issued)
	var err error
	w.Programs.Relay, err = w.Product.StartRelay(t.Context())
	must(t, err)
	w.running(t, "relay", h)
	must(t, w.Programs.Relay.Kill()) // between use and delete
	goOn(t, h)
	w.Programs.Relay, err = w.Product.StartRelay(t.Context())
	must(t, err)
	w.Ended(t, "relay", "Succeeded", 0, 0)
	w.nothingLeft(t)
	if n := ran(t, h) - before; n != 1 {
		t.Errorf("the script ran %d times", n)
	}
	w.remove(t, "relay")
}

// What kube-controller-manager does where no minter comes back.
func (w *world) endsByItself(t *testing.T, h *lab.Host) {
	w.join(t, "alone", "host-a", "pool-1")
	value := w.running(t, "alone", h)
	must(t, w.minter.Kill())
	id, _, _ := strings.Cut(value, ".")
	soon := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	w.kubectl(t, "-n", metav1.NamespaceSystem, "patch", "secret", token.BootstrapName(id), "--type=merge", "-p", `{"stringData":{"expiration":"`+soon+`"}}`)
	w.refused(t, value)
	testkit.Eventually(t, stepLimit, "the token cleaner", func() bool {
		return !slices.Contains(w.tokens(t), "kube-system/"+token.BootstrapName(id))
	})
	goOn(t, h)
	w.Ended(t, "alone", "Succeeded", 0, 0)
	// As docs/operations/join.md says: the run is let go by hand.
	w.kubectl(t, "-n", pool, "patch", "hostrun", "alone", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
	w.remove(t, "alone")
	testkit.Eventually(t, stepLimit, "the collector to take the other Secret", func() bool { return len(w.tokens(t)) == 0 })
	w.startMinter(t)
}

// Who gets none.
func TestTokensThatNobodyGets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("where the built-in approver would take the bearer's request", func(t *testing.T) { w.autoApprover(t) })
	t.Run("six runs for one name", func(t *testing.T) { w.sixForOne(t) })
	t.Run("what each account may not", func(t *testing.T) { w.mayNot(t) })
}

// away makes a host that nobody reaches.
func (w *world) away(t *testing.T, name, address string) {
	t.Helper()
	w.Object(t, name, address, address+" "+testkit.NewSigner(t, "ed25519").Line)
}

func (w *world) autoApprover(t *testing.T) {
	w.away(t, "host-x", "192.0.2.7")
	for i, group := range []string{token.Bootstrappers, token.Group, "system:authenticated"} {
		const binding = "auto-approve"
		w.Apply(t, fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:certificates.k8s.io:certificatesigningrequests:nodeclient"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}]
`, binding, group))
		name := fmt.Sprintf("bound-%d", i)
		testkit.Eventually(t, stepLimit, "the binding to count", func() bool {
			r, err := w.ControlPlane.Kubectl(t.Context(), nil, "auth", "can-i", "create", "certificatesigningrequests", "--subresource=nodeclient", "--as=system:bootstrap:hwab12", "--as-group="+group)
			must(t, err)
			return r.Code == 0
		})
		w.join(t, name, "host-x", "pool-x")
		r := w.Until(t, name, stepLimit, courier.IsOver)
		for _, kind := range []string{v1alpha1.ConditionJoined, v1alpha1.ConditionSucceeded} {
			if c := courier.ConditionOf(r, kind); c.Status != metav1.ConditionFalse || c.Reason != token.AutoApproverBound || !strings.Contains(c.Message, `"`+binding+`"`) {
				t.Errorf("%s: %s is %s, %s: %s", group, kind, c.Status, c.Reason, c.Message)
			}
		}
		if r.Status.TokenID != "" || len(w.tokens(t)) > 0 {
			t.Errorf("%s: token %q, Secrets %v", group, r.Status.TokenID, w.tokens(t))
		}
		w.kubectl(t, "delete", "clusterrolebinding", binding)
		w.remove(t, name)
	}
	// Its near miss: nothing is bound.
	w.join(t, "free", "host-x", "pool-x")
	w.joined(t, "free", token.Issued)
	w.remove(t, "free")
	w.nothingLeft(t)
}

// sixForOne are six hosts that want one name at the same moment. How many the webhook still admits is a
// matter of luck; who may go on is not.
func (w *world) sixForOne(t *testing.T) {
	var all sync.WaitGroup
	admitted := make([]bool, 6)
	for i := range admitted {
		w.away(t, fmt.Sprintf("host-%d", i), fmt.Sprintf("192.0.2.%d", 10+i))
	}
	for i := range admitted {
		all.Go(func() {
			err := w.Client.Create(t.Context(), &v1alpha1.HostRun{
				ObjectMeta: metav1.ObjectMeta{Namespace: pool, Name: fmt.Sprintf("six-%d", i)},
				Spec: v1alpha1.HostRunSpec{
					HostRef: v1alpha1.ObjectRef{Name: fmt.Sprintf("host-%d", i)}, ProfileRef: v1alpha1.ObjectRef{Name: profile},
					Phase: v1alpha1.HostRunJoin, NodeName: "pool-six",
				},
			})
			admitted[i] = err == nil
			if err != nil && !strings.Contains(err.Error(), "NodeNameTaken") {
				t.Errorf("six-%d: %v", i, err)
			}
		})
	}
	all.Wait()
	t.Logf("admitted: %v", admitted)
	var names []string
	holders := 0
	for i, ok := range admitted {
		if !ok {
			continue
		}
		name := fmt.Sprintf("six-%d", i)
		names = append(names, name)
		r := w.Until(t, name, stepLimit, func(r *v1alpha1.HostRun) bool { return courier.IsOver(r) || r.Status.TokenID != "" })
		if r.Status.TokenID != "" {
			holders++
			continue
		}
		if c := courier.ConditionOf(r, v1alpha1.ConditionSucceeded); c.Reason != "NodeNameTaken" {
			t.Errorf("%s ended %s: %s", name, c.Reason, c.Message)
		}
	}
	if holders != 1 {
		t.Errorf("%d of %d got a token", holders, len(names))
	}
	w.remove(t, names...)
	w.nothingLeft(t)
}

// mayNot asks the API server itself what the accounts of relay and minter may do.
func (w *world) mayNot(t *testing.T) {
	const relay, minter = "system:serviceaccount:hostwarrant-system:hostwarrant-relay", "system:serviceaccount:hostwarrant-system:hostwarrant-minter"
	for _, c := range []struct {
		who  string
		args []string
		may  bool
	}{
		{minter, []string{"create", "secrets", "-n", "kube-system"}, true},
		{minter, []string{"get", "secrets", "-n", "kube-system"}, false},
		{minter, []string{"list", "secrets", "-n", "kube-system"}, false},
		{minter, []string{"update", "secrets", "-n", "kube-system"}, false},
		{minter, []string{"get", "secrets", "-n", pool}, false},
		{minter, []string{"create", "secrets", "-n", pool}, true},
		{minter, []string{"create", "secrets", "-n", "default"}, false},
		{minter, []string{"create", "hostruns", "-n", pool}, false},
		{minter, []string{"delete", "hostruns", "-n", pool}, false},
		{minter, []string{"create", "serviceaccounts", "--subresource=token", "-n", "hostwarrant-system"}, false},
		{minter, []string{"patch", "nodes"}, false},
		{minter, []string{"create", "pods", "-n", pool}, false},
		{relay, []string{"create", "secrets", "-n", "kube-system"}, false},
		{relay, []string{"get", "secrets", "-n", "kube-system"}, false},
		{relay, []string{"create", "secrets", "-n", pool}, false},
		{relay, []string{"get", "secrets", "-n", pool}, true},
		{relay, []string{"get", "secrets", "-n", "default"}, false},
		{relay, []string{"update", "certificatesigningrequests", "--subresource=approval"}, false},
		{relay, []string{"create", "certificatesigningrequests"}, false},
		{relay, []string{"update", "hostruns", "-n", pool}, false},
		{relay, []string{"impersonate", "users"}, false},
		{relay, []string{"get", "configmaps/hostwarrant-host-keys", "-n", "hostwarrant-system"}, true},
		{relay, []string{"update", "configmaps/hostwarrant-host-keys", "-n", "hostwarrant-system"}, false},
		{relay, []string{"patch", "configmaps/hostwarrant-host-keys", "-n", "hostwarrant-system"}, false},
		{relay, []string{"create", "configmaps", "-n", "hostwarrant-system"}, false},
		{relay, []string{"list", "configmaps", "-n", "hostwarrant-system"}, false},
		{minter, []string{"update", "certificatesigningrequests", "--subresource=approval"}, true},
		{minter, []string{"approve", "signers"}, false}, // but for one
		{minter, []string{"sign", "signers"}, false},
		{minter, []string{"create", "certificatesigningrequests"}, false},
		{minter, []string{"update", "certificatesigningrequests", "--subresource=status"}, false},
		{minter, []string{"get", "configmaps/hostwarrant-host-keys", "-n", "hostwarrant-system"}, true},
		{minter, []string{"update", "configmaps/hostwarrant-host-keys", "-n", "hostwarrant-system"}, false},
	} {
		r, err := w.ControlPlane.Kubectl(t.Context(), nil, append([]string{"auth", "can-i", "--as=" + c.who}, c.args...)...)
		must(t, err)
		if (r.Code == 0) != c.may {
			t.Errorf("%s %s: %s%s", c.who[strings.LastIndexByte(c.who, ':')+1:], strings.Join(c.args, " "), r.Stdout, r.Stderr)
		}
	}
}
