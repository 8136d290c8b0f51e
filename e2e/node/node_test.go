//go:build linux

package node

import (
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestASignedScriptMakesAHostANode: a real kubelet, for its life, by HostRuns alone: it joins, renews its certificate by
// itself, leaves, and joins again.
func TestASignedScriptMakesAHostANode(t *testing.T) {
	w := newWorld(t)
	a := w.listed(t, "host-a")
	t.Run("join", func(t *testing.T) { w.joins(t, a) })
	if t.Failed() {
		return // all else builds on it
	}
	t.Run("join again", func(t *testing.T) { w.joinsAgain(t, a) })
	t.Run("leave, and join once more", func(t *testing.T) { w.leavesAndReturns(t) })
	t.Run("the certificate is renewed without us", func(t *testing.T) { w.renews(t, a) })
	t.Run("power off, and a new machine in its place", func(t *testing.T) { w.isReplaced(t, a) })
}

func (w *world) joins(t *testing.T, h *lab.Host) {
	w.ask(t, "install-a", h, v1alpha1.HostRunInstall, "pool-1")
	w.ended(t, "install-a", "Succeeded", 0, "Kubernetes v1.")
	n := w.joined(t, "join-a", h, "pool-1")
	if n.Spec.ProviderID != "kpssh://pool/host-a" || n.Labels["pool"] != "a" || n.Status.Addresses[0].Address != h.Addr.String() {
		t.Errorf("the node has provider id %s, labels %v, addresses %v", n.Spec.ProviderID, n.Labels, n.Status.Addresses)
	}
	if config := h.Must(t, "cat /etc/cni/net.d/10-containerd-net.conflist"); !strings.Contains(config, `"subnet": "`+n.Spec.PodCIDR+`"`) {
		t.Errorf("the network of its pods is not the node's range %s: %s", n.Spec.PodCIDR, config)
	}
	h.Must(t, "[ ! -e /etc/kubernetes/bootstrap-kubelet.conf ]")
}

// joinsAgain: what a second run does on a host that is a node already.
func (w *world) joinsAgain(t *testing.T, h *lab.Host) {
	before := h.Must(t, "readlink /var/lib/kubelet/pki/kubelet-client-current.pem")
	h.Must(t, "kill -9 $(cat /run/kubelet.pid) $(cat /run/containerd.pid)") // it had a power cut, say
	w.ask(t, "again", h, v1alpha1.HostRunJoin, "pool-1")
	w.unused(t, w.ended(t, "again", "Succeeded", 0, "host-a is the node pool-1\n"))
	if after := h.Must(t, "readlink /var/lib/kubelet/pki/kubelet-client-current.pem"); after != before {
		t.Errorf("it has another certificate: %s, before %s", after, before)
	}
	w.ask(t, "renamed", h, v1alpha1.HostRunJoin, "pool-9")
	w.unused(t, w.ended(t, "renamed", "ScriptFailed", 1, "this host is the node pool-1; run leave first\n"))
}

// unused wants no certificate request with the token of a run, and the token gone.
func (w *world) unused(t *testing.T, r *v1alpha1.HostRun) {
	t.Helper()
	if own := w.requestsBy(t, token.UserPrefix+r.Status.TokenID); r.Status.TokenID == "" || len(own) > 0 {
		t.Errorf("the token %q was used for %+v", r.Status.TokenID, own)
	}
	if c := courier.ConditionOf(w.Joined(t, r.Name, token.RunEnded), v1alpha1.ConditionJoined); c.Status != metav1.ConditionFalse {
		t.Errorf("the run %s has Joined=%s: %s", r.Name, c.Status, c.Message)
	}
	w.NoTokens(t)
}

func (w *world) leavesAndReturns(t *testing.T) {
	b := w.certified(t, "host-b")
	uid := w.joined(t, "join-b", b, "pool-2").UID
	w.ask(t, "too-early", b, v1alpha1.HostRunUninstall, "")
	w.ended(t, "too-early", "ScriptFailed", 1, "run leave first\n")
	w.ask(t, "leave-b", b, v1alpha1.HostRunLeave, "")
	w.ended(t, "leave-b", "Succeeded", 0, "host-b has left\n")
	left := b.Must(t, "pgrep -a 'kubelet|containerd' || :; find /var/lib/kubelet /etc/kubernetes /etc/cni/net.d -type f; ls /run/kubelet.pid /run/containerd.pid /etc/containerd/config.toml 2>/dev/null || :")
	if left != "" {
		t.Errorf("leave has left %s", left)
	}
	// Its own object a kubelet may not delete.
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, "delete", "node", "pool-2", "--as=system:node:pool-2", "--as-group=system:nodes")
	must(t, err)
	if r.Code == 0 || !strings.Contains(r.Stderr, "Forbidden") {
		t.Errorf("a kubelet deletes its node: %+v", r)
	}
	w.Kubectl(t, "delete", "node", "pool-2")
	if w.joined(t, "rejoin-b", b, "pool-2").UID == uid {
		t.Error("the node is the one that was deleted")
	}
	w.ask(t, "leave-b-again", b, v1alpha1.HostRunLeave, "")
	w.ended(t, "leave-b-again", "Succeeded", 0, "host-b has left\n")
	w.ask(t, "uninstall-b", b, v1alpha1.HostRunUninstall, "")
	w.ended(t, "uninstall-b", "Succeeded", 0, "host-b is blank\n")
}

// renews waits for the next certificate of a node, which it asks for by itself, and the controller manager approves.
func (w *world) renews(t *testing.T, h *lab.Host) {
	var own *certificatesv1.CertificateSigningRequest
	testkit.Eventually(t, signingDuration+limit, "pool-1 to have its certificate renewed", func() bool {
		for _, c := range w.requestsBy(t, "system:node:pool-1") {
			if c.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && len(c.Status.Certificate) > 0 {
				own = &c
			}
		}
		return own != nil
	})
	if by := own.Status.Conditions[0]; len(own.Status.Conditions) != 1 || by.Type != certificatesv1.CertificateApproved || by.Reason != "AutoApproved" {
		t.Errorf("it was judged as %+v", own.Status.Conditions)
	}
	issued := strings.TrimSpace(string(own.Status.Certificate))
	testkit.Eventually(t, limit, "the host to hold it", func() bool {
		return strings.Contains(h.Must(t, "cat /var/lib/kubelet/pki/kubelet-client-current.pem"), issued)
	})
	w.ready(t, "pool-1")
}

// isReplaced: the machine is gone with its disk, and a new one has its name and place.
func (w *world) isReplaced(t *testing.T, h *lab.Host) {
	before := w.ready(t, "pool-1")
	must(t, h.Stop())
	w.Kubectl(t, "-n", courier.Namespace, "delete", "sshhost", h.Name) // its address is immutable
	again := w.listed(t, h.Name)
	w.joined(t, "replace-a", again, "pool-1")
	testkit.Eventually(t, limit, "the node to be at the new machine's address", func() bool {
		n := w.ready(t, "pool-1")
		return n.UID == before.UID && strings.Contains(fmt.Sprint(n.Status.Addresses), again.Addr.String())
	})
}
