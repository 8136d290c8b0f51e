//go:build linux

package flood

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == hostsWord {
		if err := hosts(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(shared.Main(m))
}

const (
	stepLimit = 2 * time.Minute
	writers   = 16
)

// world is the product with that many hosts and two profiles.
type world struct {
	*courier.World
	hosts *lab.Program
	n     int
	key   testkit.Signer // of all hosts
}

func newWorld(t testing.TB, n int, script time.Duration) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w := &world{World: courier.New(ctx, t, shared.Lab(t), shared.ControlPlane(t)), n: n, key: testkit.NewSigner(t, "ed25519")}
	w.hosts = startHosts(t, w.Lab, n, script, w.Login, w.key)
	for _, name := range profiles() {
		w.Profile(t, name, "true\n")
	}
	w.Secret(t, "all", w.Login, w.key.Line)
	signer := w.SignerLine(t)
	w.each(t, n, func(i int) error {
		return w.Client.Create(t.Context(), hostObject(i, signer))
	})
	return w
}

func profiles() []string { return []string{"one", "two"} }

// each does something n times, several at a time.
func (w *world) each(t testing.TB, n int, do func(i int) error) {
	t.Helper()
	var failed atomic.Pointer[error]
	harness.Spread(n, writers, func(i int) {
		if err := do(i); err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
}

func hostName(i int) string { return fmt.Sprint("host-", i) }

func hostObject(i int, signer string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost",
		"metadata": map[string]any{"name": hostName(i), "namespace": courier.Namespace},
		"spec": map[string]any{
			"address": address(i), "user": "kpssh", "execMode": "Verified", "trustedSigners": []any{signer},
			"sshKeySecretRef": map[string]any{"name": "all-ssh"}, "capacity": map[string]any{"cpu": "2", "memory": "4Gi"},
		},
	}}
}

// runs asks for a join of each host, of one profile and the other.
func (w *world) runs(t testing.TB) {
	t.Helper()
	w.each(t, w.n, func(i int) error {
		profile := profiles()[i*2/w.n]
		return w.Client.Create(t.Context(), &v1alpha1.HostRun{
			// A relay that starts reads them in the order of their names: all of one profile first.
			ObjectMeta: metav1.ObjectMeta{Namespace: courier.Namespace, Name: fmt.Sprint(profile, "-", i)},
			Spec: v1alpha1.HostRunSpec{
				HostRef: v1alpha1.ObjectRef{Name: hostName(i)}, ProfileRef: v1alpha1.ObjectRef{Name: profile},
				Phase: v1alpha1.HostRunJoin, NodeName: "pool-" + hostName(i), DeadlineSeconds: 7200,
			},
		})
	})
}

// list is all runs, as they are stored.
func (w *world) list(t testing.TB) []v1alpha1.HostRun {
	t.Helper()
	var all v1alpha1.HostRunList
	must(t, w.Client.List(t.Context(), &all, client.InNamespace(courier.Namespace)))
	return all.Items
}

// over counts the runs that ended.
func (w *world) over(t testing.TB) int {
	t.Helper()
	n := 0
	for _, r := range w.list(t) {
		if r.Status.FinishedAt != nil {
			n++
		}
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
