//go:build linux

package faults

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Whoever deletes a run whose script has begun stops nothing: it runs to its end, once, and the host is free afterwards.
// Where a finalizer keeps the object, it tells how the script ended.
func TestARunThatIsDeletedWhileItsScriptRuns(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "deleted", counted+waiting+"exit 5\n")
	h, kept := w.at(t, "deleted"), w.at(t, "deleted-kept")
	w.Run(t, "deleted", "deleted", "deleted", nil)
	w.Run(t, "deleted-kept", "deleted-kept", "deleted", func(r *v1alpha1.HostRun) { r.Finalizers = []string{"example.com/kept"} })
	for name, host := range map[string]target{"deleted": h, "deleted-kept": kept} {
		w.begins(t, name, host)
		must(t, w.Client.Delete(t.Context(), w.Read(t, name)))
	}
	h.release(t)
	kept.release(t)
	r := w.Ended(t, "deleted-kept", "ScriptFailed", 10, 5)
	r.Finalizers = nil
	must(t, w.Client.Update(t.Context(), r))
	w.Run(t, "deleted-next", "deleted", "deleted", nil)
	w.Ended(t, "deleted-next", "ScriptFailed", 10, 5)
	kept.once(t)
	if n := h.ran(t); n != 2 {
		t.Errorf("%d runs, want the deleted one and the next", n)
	}
	for _, name := range []string{"deleted", "deleted-kept"} {
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: courier.Namespace, Name: name}, &v1alpha1.HostRun{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

// The keys of a host are changed while a script runs there: its login key and its own. The connection is lost then, and
// the relay asks with the keys that are stored.
func TestAHostWhoseKeysAreChangedWhileAScriptRuns(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "rotated", counted+waiting+"exit 5\n")
	h := w.at(t, "rotated")
	w.Run(t, "rotated", "rotated", "rotated", nil)
	w.begins(t, "rotated", h)
	login, own := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	h.Must(t, "sed -i 's|"+strings.Fields(w.Login.Line)[1]+"|"+strings.Fields(login.Line)[1]+"|' /etc/kpssh/authorized_keys && grep -q '"+strings.Fields(login.Line)[1]+"' /etc/kpssh/authorized_keys")
	must(t, h.WriteFile("/etc/ssh/ssh_host_ed25519_key", own.PEM, 0o600))
	must(t, h.WriteFile("/etc/ssh/ssh_host_ed25519_key.pub", []byte(own.Line+"\n"), 0o644))
	w.Secret(t, "rotated", login, h.Addr.String()+" "+own.Line)
	h.ReloadSSHD(t)
	h.hangUp(t)
	w.Until(t, "rotated", stepLimit, func(r *v1alpha1.HostRun) bool {
		return strings.Contains(courier.ConditionOf(r, v1alpha1.ConditionSucceeded).Message, "the script is running on the host")
	})
	h.release(t)
	messageHolds(t, w.Ended(t, "rotated", "ScriptFailed", 10, 5), v1alpha1.ConditionSucceeded, "as the host recorded")
	h.once(t)
}

// An SSHHost is deleted and made anew, for another machine, while a script runs on the first one: that ends as it ends, and
// the other machine, which knows of no run, is given none.
func TestAHostMadeAnewDoesNotGetTheRunOfTheOldOne(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "anew", counted+waiting)
	h, other := w.at(t, "anew"), w.at(t, "anew-other")
	w.Run(t, "anew", "anew", "anew", nil)
	w.begins(t, "anew", h)
	w.Kubectl(t, "-n", courier.Namespace, "delete", "sshhost", "anew")
	w.Object(t, "anew", other.Addr.String(), other.KnownHostLine())
	h.hangUp(t)
	messageHolds(t, w.Ended(t, "anew", "HostNotFound", -1, -1), v1alpha1.ConditionSucceeded, "made anew since the run was sent")
	h.release(t)
	h.once(t)
	if n := other.ran(t); n != 0 {
		t.Errorf("the other machine ran it %d times", n)
	}
	w.Run(t, "anew-next", "anew", "anew", nil)
	testkit.Eventually(t, stepLimit, "the next run on the other machine", func() bool { return other.ran(t) == 1 })
	other.release(t)
	w.Ended(t, "anew-next", "Succeeded", 0, 0)
}

// A profile is replaced while a run waits for its host: the version that is stored is judged and runs. It is replaced once
// more when the run has been judged: what was judged runs. The status tells the digest of the bytes that did.
func TestAProfileThatIsReplacedWhileARunWaits(t *testing.T) {
	w := newWorld(t)
	const tells = counted + "sha256sum <\"$0\"\n"
	w.Profile(t, "holding", counted+waiting)
	w.Profile(t, "replaced", tells+"echo one\n")
	h := w.at(t, "replaced")
	w.Run(t, "replaced-first", "replaced", "holding", nil)
	w.begins(t, "replaced-first", h)
	w.Run(t, "replaced", "replaced", "replaced", nil)
	refused, err := w.ControlPlane.Kubectl(t.Context(), nil, "delete", "sshjoinprofile", "replaced")
	must(t, err)
	if refused.Code == 0 || !strings.Contains(refused.Stderr, "InUse: ") {
		t.Errorf("a profile that a run waits for is deleted: %+v", refused)
	}
	w.ProfileAt(t, 2, "replaced", tells+"echo two\n")
	intent := w.gate.Hold(func(r *v1alpha1.HostRun) bool { return r.Name == "replaced" && isBeingSent(r) })
	h.release(t)
	arrives(t, "the record of the run", intent)
	w.ProfileAt(t, 3, "replaced", tells+"echo three\n")
	intent.Release()
	r := w.Ended(t, "replaced", "Succeeded", 0, 0)
	sum, rest, _ := strings.Cut(r.Status.TranscriptTail, " ")
	if r.Status.ScriptDigest != "sha256:"+sum || !strings.HasSuffix(rest, "\ntwo\n") || r.Status.Serial == nil || *r.Status.Serial != 2 {
		t.Errorf("the status tells %s, serial %v; what ran told %q", r.Status.ScriptDigest, r.Status.Serial, r.Status.TranscriptTail)
	}
	if n := h.ran(t); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
}

// A relay of which a host's output never ends takes 64 MiB of it and keeps 4 KiB, in little memory.
func TestOutputWithoutAnEndTakesNoMemory(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "endless", "true\n")
	w.HostWith(t, "endless", func(o *lab.HostOptions) {
		o.ShimDir = courier.StrangeShim(t, "cat >/dev/null; yes 'nobody reads this'\n")
	})
	w.Programs.Relay.ForgetPeak(t)
	before := w.Programs.Relay.PeakKiB(t)
	w.Run(t, "endless", "endless", "endless", nil)
	r := w.Until(t, "endless", stepLimit, func(r *v1alpha1.HostRun) bool {
		c := courier.ConditionOf(r, v1alpha1.ConditionSucceeded)
		return c.Reason == "Cut" && strings.Contains(c.Message, "more output than is taken")
	})
	if len(r.Status.TranscriptTail) > 4096 || r.Status.Trailer != v1alpha1.TrailerNone {
		t.Errorf("trailer %s, %d bytes kept", r.Status.Trailer, len(r.Status.TranscriptTail))
	}
	peak := w.Programs.Relay.PeakKiB(t)
	t.Logf("the relay had %d KiB, and %d at most while 64 MiB came", before, peak)
	if peak-before > 24<<10 {
		t.Errorf("64 MiB of output took %d KiB of memory", peak-before)
	}
}

// Runs that no webhook judged reach no host either: the relay judges them itself. (That admission refuses the same is
// TestHostRunsAreJudged.)
func TestRunsThatWereNeverAdmittedReachNoHost(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "never", counted)
	h := w.at(t, "never")
	w.WithoutWebhook(t)
	ctx := t.Context()
	_, err := w.ControlPlane.Client().CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "pool-living"}, Spec: corev1.NodeSpec{ProviderID: "kpssh://pool/another"},
	}, metav1.CreateOptions{})
	must(t, err)
	w.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: farm}}")
	w.Apply(t, fmt.Sprintf(`apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHHost
metadata: {name: farm-host, namespace: farm}
spec: {address: %q, user: kpssh, execMode: Verified, trustedSigners: [%q], sshKeySecretRef: {name: never-ssh}, capacity: {cpu: "2", memory: 4Gi}}
`, h.Addr, w.SignerLine(t)))
	cases := map[string]struct {
		host, node, reason string
	}{
		"never-living-node":     {"never", "pool-living", "NodeNameTaken"},
		"never-foreign-name":    {"never", "farm-1", "NodeNameRefused"},
		"never-foreign-host":    {"farm-host", "pool-x", "HostNotFound"},
		"never-the-honest-case": {"never", "pool-never", "Succeeded"},
	}
	for name, c := range cases {
		w.Run(t, name, c.host, "never", func(r *v1alpha1.HostRun) { r.Spec.NodeName = c.node })
	}
	for name, c := range cases {
		shim := int32(-1)
		if c.reason == "Succeeded" {
			shim = 0
		}
		r := w.Ended(t, name, c.reason, shim, shim)
		if d := courier.ConditionOf(r, v1alpha1.ConditionDelivered); shim < 0 && d.Status != metav1.ConditionFalse && d.Status != "" {
			t.Errorf("%s: Delivered is %q", name, d.Status)
		}
	}
	h.once(t)
	r := &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: courier.Namespace, Name: "never-a-path"},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: "farm/farm-host"}, ProfileRef: v1alpha1.ObjectRef{Name: "never"}, Phase: v1alpha1.HostRunJoin, NodeName: "pool-x",
		},
	}
	if err := w.Client.Create(ctx, r); !apierrors.IsInvalid(err) {
		t.Errorf("a host reference with a namespace in it: %v", err)
	}
}
