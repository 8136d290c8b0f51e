//go:build linux

package node

import (
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestASignedScriptMakesAHostANode: a real kubelet, for its life: it joins, renews its certificate by itself, leaves,
// and joins again.
func TestASignedScriptMakesAHostANode(t *testing.T) {
	w := newWorld(t)
	a := w.host(t, "host-a")
	t.Run("join", func(t *testing.T) { w.joins(t, a) })
	if t.Failed() {
		return // all else builds on it
	}
	t.Run("join again", func(t *testing.T) { w.joinsAgain(t, a) })
	t.Run("leave, and join once more", func(t *testing.T) { w.leavesAndReturns(t) })
	t.Run("the certificate is renewed without us", func(t *testing.T) { w.renews(t, a) })
	t.Run("power off, and a new machine in its place", func(t *testing.T) { w.isReplaced(t, a) })
}

// join runs the phase with a token of that id, and has the request approved once the host has proved it its own.
func (w *world) join(t *testing.T, h *lab.Host, node, tokenID string) delivery.Report {
	t.Helper()
	order := w.order(t, h, envelope.PhaseJoin, w.joinParams(t, h, node, w.token(t, tokenID)))
	var report delivery.Report
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		report, err = delivery.Deliver(t.Context(), order, func() error { return nil })
	}()
	w.approve(t, h, tokenID)
	<-ended
	must(t, err)
	return report
}

func (w *world) joins(t *testing.T, h *lab.Host) {
	want(t, w.run(t, h, envelope.PhaseInstall, w.joinParams(t, h, "pool-1", "")), envelope.ExitOK, "Kubernetes v1.")
	want(t, w.join(t, h, "pool-1", "hwaaaa"), envelope.ExitOK, "host-a is the node pool-1\n")
	n := w.ready(t, "pool-1")
	if n.Spec.ProviderID != "kpssh://pool/host-a" || n.Labels["pool"] != "a" || n.Status.Addresses[0].Address != h.Addr.String() {
		t.Errorf("the node has provider id %s, labels %v, addresses %v", n.Spec.ProviderID, n.Labels, n.Status.Addresses)
	}
	if config := h.Must(t, "cat /etc/cni/net.d/10-containerd-net.conflist"); !strings.Contains(config, `"subnet": "`+n.Spec.PodCIDR+`"`) {
		t.Errorf("the network of its pods is not the node's range %s: %s", n.Spec.PodCIDR, config)
	}
	h.Must(t, "[ ! -e /etc/kubernetes/bootstrap-kubelet.conf ]")
	if left := h.Must(t, "grep -l hwaaa[a] /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null || :"); left != "" {
		t.Errorf("the token is still in %s", left)
	}
}

// joinsAgain: what a second run does on a host that is a node already.
func (w *world) joinsAgain(t *testing.T, h *lab.Host) {
	before := h.Must(t, "readlink /var/lib/kubelet/pki/kubelet-client-current.pem")
	params := w.joinParams(t, h, "pool-1", w.token(t, "hwbbbb"))
	h.Must(t, "kill -9 $(cat /run/kubelet.pid) $(cat /run/containerd.pid)") // it had a power cut, say
	want(t, w.run(t, h, envelope.PhaseJoin, params), envelope.ExitOK, "host-a is the node pool-1\n")
	if after := h.Must(t, "readlink /var/lib/kubelet/pki/kubelet-client-current.pem"); after != before {
		t.Errorf("it has another certificate: %s, before %s", after, before)
	}
	w.unused(t, "hwbbbb")
	params["KPSSH_NODE_NAME"] = "pool-9"
	want(t, w.run(t, h, envelope.PhaseJoin, params), envelope.ExitScriptFailed, "this host is the node pool-1; run leave first\n")
	w.unused(t, "hwbbbb")
}

// unused wants no certificate request with that token.
func (w *world) unused(t *testing.T, tokenID string) {
	t.Helper()
	for _, c := range w.requests(t) {
		if c.Spec.Username == "system:bootstrap:"+tokenID {
			t.Errorf("the token %s was used for %s", tokenID, c.Name)
		}
	}
}

func (w *world) leavesAndReturns(t *testing.T) {
	b := w.host(t, "host-b")
	want(t, w.join(t, b, "pool-2", "hwcccc"), envelope.ExitOK, "host-b is the node pool-2\n")
	uid := w.ready(t, "pool-2").UID
	address := map[string]string{"KPSSH_HOST_ADDRESS": b.Addr.String(), "KPSSH_NODE_ADDRESS": b.Addr.String()}
	want(t, w.run(t, b, envelope.PhaseUninstall, address), envelope.ExitScriptFailed, "run leave first\n")
	want(t, w.run(t, b, envelope.PhaseLeave, address), envelope.ExitOK, "host-b has left\n")
	left := b.Must(t, "pgrep -a 'kubelet|containerd' || :; find /var/lib/kubelet /etc/kubernetes /etc/cni/net.d -type f; ls /run/kubelet.pid /run/containerd.pid /etc/containerd/config.toml 2>/dev/null || :")
	if left != "" {
		t.Errorf("leave has left %s", left)
	}
	// Its own object a kubelet may not delete.
	if r := w.kubectl(t, "delete", "node", "pool-2", "--as=system:node:pool-2", "--as-group=system:nodes"); r.Code == 0 || !strings.Contains(r.Stderr, "Forbidden") {
		t.Errorf("a kubelet deletes its node: %+v", r)
	}
	if r := w.kubectl(t, "delete", "node", "pool-2"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	want(t, w.join(t, b, "pool-2", "hwdddd"), envelope.ExitOK, "host-b is the node pool-2\n")
	if again := w.ready(t, "pool-2"); again.UID == uid {
		t.Error("the node is the one that was deleted")
	}
	want(t, w.run(t, b, envelope.PhaseLeave, address), envelope.ExitOK, "host-b has left\n")
	want(t, w.run(t, b, envelope.PhaseUninstall, address), envelope.ExitOK, "host-b is blank\n")
}

// renews waits for the next certificate of a node, which it asks for by itself, and the controller manager approves.
func (w *world) renews(t *testing.T, h *lab.Host) {
	var own *certificatesv1.CertificateSigningRequest
	testkit.Eventually(t, signingDuration+limit, "pool-1 to have its certificate renewed", func() bool {
		for _, c := range w.requests(t) {
			if c.Spec.Username == "system:node:pool-1" && c.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && len(c.Status.Certificate) > 0 {
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
	before := w.node(t, "pool-1")
	must(t, h.Stop())
	again := w.host(t, h.Name)
	want(t, w.join(t, again, "pool-1", "hweeee"), envelope.ExitOK, "host-a is the node pool-1\n")
	testkit.Eventually(t, limit, "the node to be at the new machine's address", func() bool {
		n := w.ready(t, "pool-1")
		return n.UID == before.UID && strings.Contains(fmt.Sprint(n.Status.Addresses), again.Addr.String())
	})
}

func (w *world) requests(t *testing.T) []certificatesv1.CertificateSigningRequest {
	t.Helper()
	all, err := w.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return all.Items
}
