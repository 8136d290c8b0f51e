//go:build linux

package courier

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Namespace is where hosts and runs are; node names there begin with it.
const Namespace = "pool"

// ClusterID is what the programs and the hosts take the cluster for.
const ClusterID = "lab"

// World is the product in a control plane that has nothing else.
type World struct {
	Lab          *lab.Lab
	ControlPlane *lab.ControlPlane
	Product      *product.Product
	Programs     product.Programs
	Client       client.Client
	Keys         string // directory of hostwarrant init
	Login        testkit.Signer
}

// New installs the product and returns when relay and webhook are ready. ctx bounds that.
func New(ctx context.Context, t testing.TB, l *lab.Lab, cp *lab.ControlPlane) *World {
	t.Helper()
	w := &World{Lab: l, ControlPlane: cp, Client: newClient(t, cp), Keys: filepath.Join(l.StateDir(), "keys"), Login: testkit.NewSigner(t, "ed25519")}
	authority, err := cp.CA()
	must(t, err)
	file := testkit.WriteFile(t, t.TempDir(), "ca.crt", authority)
	w.Command(t, "init", w.Keys, "--cluster", ClusterID+"="+cp.RESTConfig().Host, "--cluster-ca", ClusterID+"="+file, "--namespace", Namespace)
	roots, err := os.ReadFile(filepath.Join(w.Keys, "root.pub"))
	must(t, err)
	w.Product, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: cp, Roots: roots, ClusterID: ClusterID, HostNamespaces: []string{Namespace}, UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	w.start(ctx, t)
	return w
}

// start starts the programs. A webhook that has only just started may not have
// read the cluster yet, and says so.
func (w *World) start(ctx context.Context, t testing.TB) {
	t.Helper()
	var err error
	w.Programs.Webhook, err = w.Product.StartWebhook(ctx)
	must(t, err)
	w.Programs.Controller, err = w.Product.StartController(ctx)
	must(t, err)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err = w.Product.ApplyPolicy(ctx, w.PolicyFile())
		if err == nil || !strings.Contains(err.Error(), "SnapshotUnavailable") || ctx.Err() != nil {
			break
		}
		<-tick.C
	}
	must(t, err)
	w.Programs.Relay, err = w.Product.StartRelay(ctx)
	must(t, err)
	for _, program := range []*product.Program{w.Programs.Webhook, w.Programs.Relay} {
		must(t, program.Wait(ctx, "/readyz"))
	}
}

// PolicyFile is the signed TrustPolicy.
func (w *World) PolicyFile() string { return filepath.Join(w.Keys, "trust-policy.yaml") }

func newClient(t testing.TB, cp *lab.ControlPlane) client.Client {
	t.Helper()
	log.SetLogger(logr.Discard()) // the programs have logs of their own
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(cp.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// Command runs the hostwarrant CLI and gives its stdout.
func (w *World) Command(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(w.Lab.Root(), "bin", "hostwarrant"), args...).Output()
	if err != nil {
		t.Fatalf("hostwarrant %s: %v: %s", strings.Join(args, " "), err, exitStderr(err))
	}
	return string(out)
}

func exitStderr(err error) string {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(e.Stderr)
	}
	return ""
}

// Apply applies objects that must be taken.
func (w *World) Apply(t testing.TB, objects string) {
	t.Helper()
	r, err := w.ControlPlane.Kubectl(t.Context(), strings.NewReader(objects), "apply", "-f", "-")
	must(t, err)
	if r.Code != 0 {
		t.Fatalf("kubectl apply: %s", r.Stderr)
	}
}

// AppliesInTime applies what a policy allows that the webhook has yet to read.
func (w *World) AppliesInTime(t testing.TB, objects string) {
	t.Helper()
	var said string
	testkit.Eventually(t, stepLimit, "kubectl apply", func() bool {
		r, err := w.ControlPlane.Kubectl(t.Context(), strings.NewReader(objects), "apply", "-f", "-")
		must(t, err)
		if r.Stderr != said {
			said = r.Stderr
			t.Logf("kubectl apply: %s", said)
		}
		return r.Code == 0
	})
}

// stepLimit bounds what should take seconds, on a busy machine.
const stepLimit = 2 * time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
