//go:build linux

package statements

import (
	"context"
	"errors"
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
	other := w.otherShim(t, "host-other")
	w.Profile(t, "touch", "touch /root/touched\n")
	all := []string{"host-a", "host-away", "host-claimed"}

	w.apply(t, w.sign(t, "root", "floor", 1, "--floor", "touch=1"), "")
	w.know(t, all, "floor 1")
	w.until(t, "the host with the other shim to be known for it", func() bool { return w.reason(t, "host-other", "Current") == "StatementsUnsupported" })
	asked := w.asked(t, other)
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

	// The roots change twice while one host is away and no relay runs.
	must(t, w.Programs.Relay.Stop())
	w.rotate(t, 2, "root", "next")
	w.rotate(t, 3, "next", "third")
	w.apply(t, w.sign(t, "next", "revoke", 2, "--fingerprint", w.signer(t)), "ThresholdNotMet")
	w.apply(t, w.sign(t, "third", "revoke", 2, "--fingerprint", w.signer(t)), "")
	before := logins(away)
	var err error
	w.Programs.Relay, err = w.Product.StartRelay(ctx)
	must(t, err)
	w.know(t, []string{"host-a", "host-claimed"}, "roots 3", "revoke 2")
	must(t, away.Plug(t.Context()))
	w.know(t, all, "roots 3", "revoke 2")
	if n := logins(away) - before; n != 1 {
		t.Errorf("the host that was away was visited %d times to be told two links and a revocation; the end of its log:\n%s", n, away.Log(30))
	}
	w.remove(t, "roots-2", "InUse")
	w.remove(t, "roots-3", "InUse")
	for _, name := range all {
		w.until(t, name+" to be current", func() bool { return w.reason(t, name, "Current") == "Current" })
	}
	w.until(t, "the statement to be known to all but the other shim", func() bool {
		var s v1alpha1.HostStatement
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "revoke-2"}, &s))
		return s.Status.Hosts == 4 && s.Status.Applied == 3 && s.Status.Refused == 1
	})
	w.until(t, "the statement by the first roots to be refused", func() bool {
		var s v1alpha1.HostStatement
		must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "floor-2"}, &s))
		return strings.Contains(fmt.Sprint(s.Status.Conditions), "ThresholdNotMet")
	})
	// Four statements later the other shim was asked nothing more, and fleet says why it is behind.
	if got := w.asked(t, other); got != asked {
		t.Errorf("the host with the other shim was asked %d times, then %d", asked, got)
	}
	w.fleetSays(t, "it answered: StatementsUnsupported")
}

// rotate makes a key and puts it in the place of the root before: a link needs the signatures of both.
func (w *world) rotate(t *testing.T, version int, from, to string) {
	t.Helper()
	must(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", filepath.Join(w.Keys, to)).Run())
	link := w.sign(t, from, "roots", version, "--keys", filepath.Join(w.Keys, to+".pub"), "--threshold", "1")
	w.apply(t, link, "ThresholdNotMet")
	w.Command(t, "statement", "sign", link, "--key", filepath.Join(w.Keys, to))
	w.apply(t, link, "")
}

// logins are how often the relay logged in to a host, by the log of its sshd.
func logins(h *lab.Host) int { return strings.Count(h.Log(1_000_000), "Accepted publickey for kpssh") }

// otherShim starts a host whose shim knows of no statements, as karpenter-provider-ssh's.
func (w *world) otherShim(t *testing.T, name string) *lab.Host {
	t.Helper()
	return w.HostWith(t, name, func(o *lab.HostOptions) {
		o.ShimDir = courier.StrangeShim(t, "cat >/dev/null; echo 'kpssh-shim: unknown phase' >&2; exit 5\n")
	})
}

// asked is how often the relay had something to say or to ask there.
func (w *world) asked(t *testing.T, h *lab.Host) int {
	t.Helper()
	text, err := h.ReadFile(courier.StrangeFile)
	must(t, err)
	return strings.Count(string(text), "ran\n")
}

// fleetSays wants words in what hostwarrant fleet says of this cluster, where somebody is behind.
func (w *world) fleetSays(t *testing.T, want string) {
	t.Helper()
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, "get", "sshhosts,hoststates,hoststatements,trustpolicies,sshjoinprofiles", "-A", "-o", "json")
	must(t, err)
	cmd := exec.Command(filepath.Join(w.Lab.Root(), "bin", "hostwarrant"), "fleet", "-")
	cmd.Stdin = strings.NewReader(r.Stdout)
	out, err := cmd.CombinedOutput()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 1 || !strings.Contains(string(out), want) {
		t.Errorf("hostwarrant fleet: %v; want exit 1 and %q\n%s", err, want, out)
	}
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
