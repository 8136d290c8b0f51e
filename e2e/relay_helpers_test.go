//go:build linux

package e2e

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

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const pool = "pool"

// courierWorld is the installed product in a lab of its own.
type courierWorld struct {
	lab      *lab.Lab
	cp       *lab.ControlPlane
	product  *product.Product
	programs product.Programs
	client   client.Client
	keys     string // directory of hostwarrant init
	login    testkit.Signer
}

func newCourierWorld(t *testing.T) *courierWorld {
	t.Helper()
	w := &courierWorld{keys: filepath.Join(t.TempDir(), "keys"), login: testkit.NewSigner(t, "ed25519")}
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	w.lab, w.cp = l, cp
	w.client = newClient(t, w.cp)
	w.command(t, "init", w.keys, "--cluster", "lab="+w.cp.RESTConfig().Host, "--namespace", pool)
	roots, err := os.ReadFile(filepath.Join(w.keys, "root.pub"))
	must(t, err)
	w.product, err = product.Install(ctx, product.Options{Lab: l, ControlPlane: w.cp, Roots: roots, ClusterID: "lab", HostNamespaces: []string{pool}, UpstreamCRDs: upstreamCRDs(t)})
	must(t, err)
	w.start(ctx, t)
	return w
}

// start starts the programs. A webhook that has only just started may not have
// read the cluster yet, and says so.
func (w *courierWorld) start(ctx context.Context, t *testing.T) {
	t.Helper()
	var err error
	w.programs.Webhook, err = w.product.StartWebhook(ctx)
	must(t, err)
	w.programs.Controller, err = w.product.StartController(ctx)
	must(t, err)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err = w.product.ApplyPolicy(ctx, filepath.Join(w.keys, "trust-policy.yaml"))
		if err == nil || !strings.Contains(err.Error(), "SnapshotUnavailable") || ctx.Err() != nil {
			break
		}
		<-tick.C
	}
	must(t, err)
	w.programs.Relay, err = w.product.StartRelay(ctx)
	must(t, err)
	for _, program := range []*product.Program{w.programs.Webhook, w.programs.Relay} {
		must(t, program.Wait(ctx, "/readyz"))
	}
}

func newClient(t *testing.T, cp *lab.ControlPlane) client.Client {
	t.Helper()
	log.SetLogger(logr.Discard()) // the programs have logs of their own
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(cp.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// command runs the hostwarrant CLI and gives its stdout.
func (w *courierWorld) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(w.lab.Root(), "bin", "hostwarrant"), args...).Output()
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

func (w *courierWorld) apply(t *testing.T, object string) {
	t.Helper()
	r, err := w.cp.Kubectl(t.Context(), strings.NewReader(object), "apply", "-f", "-")
	must(t, err)
	if r.Code != 0 {
		t.Fatalf("kubectl apply: %s", r.Stderr)
	}
}

// appliesInTime applies what a policy allows that the webhook has yet to read.
func (w *courierWorld) appliesInTime(t *testing.T, object string) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); ; <-tick.C {
		r, err := w.cp.Kubectl(t.Context(), strings.NewReader(object), "apply", "-f", "-")
		must(t, err)
		if r.Code == 0 {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("kubectl apply: %s", r.Stderr)
		}
	}
}

// profile signs and applies serial 1 of a profile whose join script is the given one.
func (w *courierWorld) profile(t *testing.T, name, join string, params ...string) {
	t.Helper()
	args := []string{"--serial", "1", "--target", "class " + product.HostClass}
	for _, words := range params {
		args = append(args, "--param", words)
	}
	w.apply(t, w.signed(t, name, join, args...))
}

// signed is an SSHJoinProfile, signed with what args say of its warrants.
func (w *courierWorld) signed(t *testing.T, name, join string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for phase, text := range map[string]string{"install": "true\n", "join": join, "leave": "true\n"} {
		testkit.WriteFile(t, dir, phase+".sh", []byte("#!/usr/bin/env bash\nset -eu\n"+text))
	}
	return w.command(t, append([]string{"sign", dir, "--key", filepath.Join(w.keys, "signer"), "--profile", name}, args...)...)
}

func (w *courierWorld) signerLine(t *testing.T) string {
	t.Helper()
	line, err := os.ReadFile(filepath.Join(w.keys, "signer.pub"))
	must(t, err)
	return strings.TrimSpace(string(line))
}

// host starts a host that judges by the policy and requires warrants, and makes its SSHHost and Secret.
func (w *courierWorld) host(t *testing.T, name string) *lab.Host {
	t.Helper()
	return w.hostWith(t, name, func(*lab.HostOptions) {})
}

// hostWith starts one with a change.
func (w *courierWorld) hostWith(t *testing.T, name string, change func(*lab.HostOptions)) *lab.Host {
	t.Helper()
	o, err := product.HostTrust{
		Lab: w.lab, ControlPlane: w.cp, ClusterID: "lab",
		Policy: filepath.Join(w.keys, "trust-policy.yaml"), Roots: filepath.Join(w.keys, "root.pub"),
	}.HostOptions(t.Context())
	must(t, err)
	o.Name, o.RelayKey = name, w.login.PublicKey()
	change(&o)
	h, err := w.lab.StartHost(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", name, h.Log(20))
		}
		must(t, h.Stop())
	})
	w.object(t, name, h.Addr.String(), h.KnownHostLine())
	return h
}

// object makes SSHHost and Secret. An empty knownHost is left out.
func (w *courierWorld) object(t *testing.T, name, address, knownHost string) {
	t.Helper()
	pin := ""
	if knownHost != "" {
		pin = fmt.Sprintf("  knownHost: %q\n", knownHost)
	}
	w.apply(t, fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %[1]s-ssh, namespace: pool}
stringData:
  privateKey: %[2]q
%[3]s---
apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHHost
metadata: {name: %[1]s, namespace: pool}
spec:
  address: %[4]q
  user: kpssh
  execMode: Verified
  trustedSigners: [%[5]q]
  sshKeySecretRef: {name: %[1]s-ssh}
  capacity: {cpu: "2", memory: 4Gi}
`, name, string(w.login.PEM), pin, address, w.signerLine(t)))
}

// run asks for a join: of host-a as pool-1, of others under names of their own, since two hosts cannot join under one.
func (w *courierWorld) run(t *testing.T, name, host, profile string, change func(*v1alpha1.HostRun)) {
	t.Helper()
	node := "pool-1"
	if host != "host-a" {
		node = "pool-" + host
	}
	r := &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool, Name: name},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: host}, ProfileRef: v1alpha1.ObjectRef{Name: profile}, Phase: v1alpha1.HostRunJoin, NodeName: node,
		},
	}
	if change != nil {
		change(r)
	}
	must(t, w.client.Create(t.Context(), r))
}

func (w *courierWorld) read(t *testing.T, name string) *v1alpha1.HostRun {
	t.Helper()
	var r v1alpha1.HostRun
	must(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: pool, Name: name}, &r))
	return &r
}

func conditionOf(r *v1alpha1.HostRun, kind string) metav1.Condition {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// until polls a run.
func (w *courierWorld) until(t *testing.T, name string, limit time.Duration, done func(*v1alpha1.HostRun) bool) *v1alpha1.HostRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		r := w.read(t, name)
		if done(r) {
			return r
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %s the run is %+v; the relay's log:\n%s", limit, r.Status, w.programs.Relay.Tail(20))
		}
	}
}

func isOver(r *v1alpha1.HostRun) bool {
	c := conditionOf(r, v1alpha1.ConditionSucceeded)
	return c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse
}

// ended waits for the end of a run and compares its result and exit codes; -1 is
// none.
func (w *courierWorld) ended(t *testing.T, name, reason string, shim, script int32) *v1alpha1.HostRun {
	t.Helper()
	r := w.until(t, name, 2*time.Minute, isOver)
	c := conditionOf(r, v1alpha1.ConditionSucceeded)
	if c.Reason != reason || value(r.Status.ShimExitCode) != shim || value(r.Status.ScriptExitCode) != script {
		t.Fatalf("run ended %s (%s), shim %d, script %d; want %s, %d, %d; output %q", c.Reason, c.Message,
			value(r.Status.ShimExitCode), value(r.Status.ScriptExitCode), reason, shim, script, r.Status.TranscriptTail)
	}
	return r
}

func value(n *int32) int32 {
	if n == nil {
		return -1
	}
	return *n
}
