//go:build linux

package node

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

func TestInterim(t *testing.T) {
	w := newWorld(t)
	h := w.host(t, "host-a")
	want(t, w.run(t, h, "install", map[string]string{"KPSSH_NODE_NAME": "pool-1"}), "Kubernetes v1")
	done := make(chan delivery.Report, 1)
	token := w.token(t, "hw0001")
	go func() { done <- w.run(t, h, "join", w.joinParams(t, h, "pool-1", token)) }()
	w.approve(t, h, "hw0001")
	want(t, <-done, "host-a is the node pool-1")
	n := w.ready(t, "pool-1")
	t.Logf("%+v %+v", n.Spec, n.Labels)
	t.Log(h.Must(t, "ps axf; cat /var/log/kubelet.log | tail -20"))
	want(t, w.run(t, h, "leave", nil), "host-a has left")
	t.Log(h.Must(t, "ps axf; find /var/lib/kubelet /etc/kubernetes /etc/cni /etc/containerd; cat /proc/mounts"))
	want(t, w.run(t, h, "uninstall", nil), "blank")
}
