//go:build linux

package statements

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// stepLimit bounds what takes seconds, on a busy machine.
const stepLimit = 5 * time.Minute

type world struct {
	*courier.World
	dir string // of statements
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatementsReachHosts is one story, in which each step needs the one before.
func TestStatementsReachHosts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*stepLimit)
	defer cancel()
	w := &world{courier.New(ctx, t, shared.Lab(t), shared.ControlPlane(t)), t.TempDir()}
	a, away := w.Host(t, "host-a"), w.Host(t, "host-away")
	w.Host(t, "host-claimed")
	w.claim(t, "host-claimed")
	w.Profile(t, "touch", "touch /root/touched\n")
	all := []string{"host-a", "host-away", "host-claimed"}

	w.apply(t, w.sign(t, "root", "floor", 1, "--floor", "touch=1"), "")
	w.know(t, all, "floor 1")
	w.Run(t, "before", "host-a", "touch", nil)
	w.Ended(t, "before", "Succeeded", 0, 0)
	a.Must(t, "rm /root/touched")

	must(t, away.Unplug(t.Context()))
	w.apply(t, w.sign(t, "root", "revoke", 1, "--fingerprint", w.signer(t)), "")
	w.Run(t, "after", "host-a", "touch", nil)
	w.Ended(t, "after", "Refused", 13, -1)
	if r := a.Shell(t, "test -e /root/touched"); r.Code == 0 {
		t.Fatal("a script by a revoked signer ran")
	}
	w.know(t, []string{"host-a", "host-claimed"}, "revoke 1")
	w.until(t, "the host that is away to be Unreachable", func() bool { return w.reason(t, "host-away", "Reachable") == "Unreachable" })

	// What is older, or not the roots' word, is not taken; what is the newest stays.
	w.apply(t, w.sign(t, "signer", "floor", 7, "--floor", "touch=7"), "ThresholdNotMet")
	w.remove(t, "floor-1", "InUse")
	w.apply(t, w.sign(t, "root", "floor", 2, "--floor", "touch=1"), "")
	w.remove(t, "floor-1", "")
	w.apply(t, w.sign(t, "root", "floor", 1, "--floor", "touch=1"), "SerialRollback")

	// The roots change while one host is away and no relay runs.
	must(t, w.Programs.Relay.Stop())
	must(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(w.Keys, "next")).Run())
	link := w.sign(t, "root", "roots", 2, "--keys", filepath.Join(w.Keys, "next.pub"), "--threshold", "1")
	w.apply(t, link, "ThresholdNotMet")
	w.Command(t, "statement", "sign", link, "--key", filepath.Join(w.Keys, "next"))
	w.apply(t, link, "")
	w.apply(t, w.sign(t, "next", "revoke", 2, "--fingerprint", w.signer(t)), "")
	var err error
	w.Programs.Relay, err = w.Product.StartRelay(ctx)
	must(t, err)
	w.know(t, []string{"host-a", "host-claimed"}, "roots 2", "revoke 2")
	must(t, away.Plug(t.Context()))
	w.know(t, all, "roots 2", "revoke 2")
	w.remove(t, "roots-2", "InUse")
	for _, name := range all {
		w.until(t, name+" to be current", func() bool { return w.reason(t, name, "Current") == "Current" })
	}
	w.until(t, "the statement to be Delivered", func() bool {
		var s v1alpha1.HostStatement
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "revoke-2"}, &s))
		return s.Status.Hosts == 3 && s.Status.Applied == 3
	})
	w.until(t, "the statement by the first roots to be refused", func() bool {
		var s v1alpha1.HostStatement
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "floor-2"}, &s))
		return strings.Contains(fmt.Sprint(s.Status.Conditions), "ThresholdNotMet")
	})
}

// sign makes a statement for the cluster by one key, and gives its file.
func (w *world) sign(t *testing.T, key, kind string, serial int, args ...string) string {
	t.Helper()
	file := filepath.Join(w.dir, fmt.Sprintf("%s-%d-%s", kind, serial, key))
	base := []string{"statement", "sign", kind, "--serial", fmt.Sprint(serial), "--cluster", courier.ClusterID, "--key", filepath.Join(w.Keys, key), "-o", file, "--force"}
	w.Command(t, append(base, args...)...)
	return file
}

// apply applies the object of a statement; want is the Reason of the refusal, "" for none.
func (w *world) apply(t *testing.T, file, want string) {
	t.Helper()
	object := w.Command(t, "statement", "object", file)
	w.kubectl(t, want, object, "apply", "-f", "-")
}

func (w *world) remove(t *testing.T, name, want string) {
	t.Helper()
	w.kubectl(t, want, "", "delete", "hoststatement", name)
}

// kubectl wants success, or a refusal with that Reason. The webhook may not have seen the last write yet.
func (w *world) kubectl(t *testing.T, want, stdin string, args ...string) {
	t.Helper()
	last := ""
	w.until(t, "kubectl "+strings.Join(args, " ")+" to answer "+want, func() bool {
		r, err := w.ControlPlane.Kubectl(t.Context(), strings.NewReader(stdin), args...)
		must(t, err)
		if last != r.Stderr {
			last = r.Stderr
			t.Logf("kubectl %s: %d %s", strings.Join(args, " "), r.Code, r.Stderr)
		}
		if want == "" {
			return r.Code == 0
		}
		if r.Code == 0 {
			t.Fatalf("kubectl %s succeeds, want %s", strings.Join(args, " "), want)
		}
		return strings.Contains(r.Stderr, ": "+want+": ")
	})
}

// claim writes what karpenter-provider-ssh writes when it takes a host.
func (w *world) claim(t *testing.T, name string) {
	t.Helper()
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, "patch", "sshhost", name, "-n", courier.Namespace, "--subresource=status", "--type=merge",
		"-p", `{"status":{"claimRef":{"name":"nodeclaim-1","uid":"3f1f5b0e-6d1c-4c53-9d5e-0b8f6a1c2d3e"}}}`)
	must(t, err)
	if r.Code != 0 {
		t.Fatal(r.Stderr)
	}
}

// signer is the fingerprint of the key that signs scripts.
func (w *world) signer(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-lf", filepath.Join(w.Keys, "signer.pub")).Output()
	must(t, err)
	return strings.Fields(string(out))[1]
}

func (w *world) state(t *testing.T, name string) *v1alpha1.HostState {
	t.Helper()
	var s v1alpha1.HostState
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: courier.Namespace, Name: name}, &s)
	must(t, client.IgnoreNotFound(err))
	return &s
}

func (w *world) reason(t *testing.T, name, kind string) string {
	t.Helper()
	for _, c := range w.state(t, name).Status.Conditions {
		if c.Type == kind && c.Status != metav1.ConditionUnknown {
			return c.Reason
		}
	}
	return ""
}

// know waits until hosts are known to have statements, "kind serial".
func (w *world) know(t *testing.T, hosts []string, want ...string) {
	t.Helper()
	for _, name := range hosts {
		for _, one := range want {
			w.until(t, name+" to know "+one, func() bool {
				for _, s := range w.state(t, name).Status.Statements {
					if fmt.Sprintf("%s %d", s.Kind, s.Serial) == one {
						return true
					}
				}
				return false
			})
		}
	}
}

func (w *world) until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			var all v1alpha1.HostStateList
			must(t, w.Client.List(t.Context(), &all))
			t.Fatalf("after %s still waiting for %s; states %+v; the relay's log:\n%s", stepLimit, what, all.Items, w.Programs.Relay.Tail(30))
		}
	}
}
