//go:build linux

package faults

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// world is the product with its relay as a process of its own, and a gate before the status of HostRuns.
type world struct {
	*courier.World
	gate *harness.Gate
}

var (
	installOnce sync.Once
	installed   *world
)

// newWorld returns the one installation of the package, with a relay that runs. Tests that break the relay run
// one after the other.
func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.ControlPlane(t)
	installOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		w := &world{World: courier.New(ctx, t, shared.Lab(t), cp)}
		w.namePoolNodesOnly(ctx, t)
		var err error
		w.gate, err = harness.StartGate(ctx, cp, "gate")
		must(t, err)
		installed = w
	})
	if installed == nil {
		t.Fatal("the product is not installed; see the first test that failed")
	}
	installed.relayRuns(t)
	return installed
}

// namePoolNodesOnly has the policy allow node names that begin with the namespace's.
func (w *world) namePoolNodesOnly(ctx context.Context, t *testing.T) {
	t.Helper()
	w.RewritePolicy(ctx, t, map[string]string{"    version: 1\n": "    version: 2\n", `nodeNames: ["*"]`: `nodeNames: ["pool-*"]`})
}

// relayRuns starts a relay where none runs: a Deployment would.
func (w *world) relayRuns(t *testing.T) {
	t.Helper()
	select {
	case <-w.Programs.Relay.Done():
		w.startRelay(t)
	default:
	}
}

func (w *world) startRelay(t *testing.T) {
	t.Helper()
	var err error
	w.Programs.Relay, err = w.Product.StartRelay(t.Context())
	must(t, err)
}

// another starts one more relay, until the test ends.
func (w *world) another(t *testing.T, name string, flags ...string) *product.Program {
	t.Helper()
	relay, err := w.Product.StartRelayAs(t.Context(), name, flags...)
	must(t, err)
	t.Cleanup(func() { must(t, relay.Kill()) })
	return relay
}

// at starts a host of that name for as long as the test lasts.
func (w *world) at(t *testing.T, name string) target {
	t.Helper()
	return target{Host: w.Host(t, name)}
}

// begins waits until a script of the run is on its way.
func (w *world) begins(t *testing.T, run string, h target) {
	t.Helper()
	testkit.Eventually(t, stepLimit, "script of "+run, func() bool { return h.ran(t) == 1 })
	if c := courier.ConditionOf(w.Read(t, run), v1alpha1.ConditionDelivered); c.Status != metav1.ConditionUnknown {
		t.Fatalf("%s runs, and Delivered is %q", run, c.Status)
	}
}

// isBeingSent says whether a run is stored as one that the host may have.
func isBeingSent(r *v1alpha1.HostRun) bool {
	return courier.ConditionOf(r, v1alpha1.ConditionDelivered).Status == metav1.ConditionUnknown
}

// arrives waits for a write that the gate holds.
func arrives(t *testing.T, what string, h *harness.Held) {
	t.Helper()
	select {
	case <-h.Arrived():
	case <-time.After(stepLimit):
		t.Fatalf("waited in vain for %s", what)
	}
}

// connections counts those that the host's kernel has to its sshd (proc_net(5): local port 22, ESTABLISHED).
func (h target) connections(t *testing.T) int {
	t.Helper()
	n := 0
	for line := range strings.Lines(h.Must(t, "cat /proc/net/tcp")) {
		if f := strings.Fields(line); len(f) > 3 && strings.HasSuffix(f[1], ":0016") && f[3] == "01" {
			n++
		}
	}
	return n
}

// messageHolds wants a condition's message to hold a text.
func messageHolds(t *testing.T, r *v1alpha1.HostRun, kind, text string) {
	t.Helper()
	if c := courier.ConditionOf(r, kind); !strings.Contains(c.Message, text) {
		t.Errorf("%s of %s is %s: %q, want %q", kind, r.Name, c.Reason, c.Message, text)
	}
}
