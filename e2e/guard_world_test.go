//go:build linux

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// guardWorld is what is installed and stored, with no program of ours running: what still refuses
// is the API server by itself.
type guardWorld struct {
	cp *lab.ControlPlane
	// static is the directory from which the API server reads policies; empty at first.
	static string
	signer testkit.Signer
}

func newGuardWorld(t *testing.T) *guardWorld {
	t.Helper()
	ctx, l := shared.OwnLab(t)
	w := &guardWorld{static: filepath.Join(l.StateDir(), "static"), signer: testkit.NewSigner(t, "ed25519")}
	must(t, os.Mkdir(w.static, 0o755))
	var err error
	w.cp, err = l.StartControlPlane(ctx, lab.ControlPlaneOptions{APIServerArgs: []string{"--admission-control-config-file=" + w.admissionConfiguration(t, l)}})
	must(t, err)
	_, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: w.cp, Roots: []byte(testkit.NewSigner(t, "ed25519").Line + "\n"), ClusterID: "guarded", HostNamespaces: []string{pool},
		UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	w.allowed(t, nil, "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "hostwarrant")
	return w
}

// admissionConfiguration writes the shipped example with this lab's directory in it.
func (w *guardWorld) admissionConfiguration(t *testing.T, l *lab.Lab) string {
	t.Helper()
	shipped, err := os.ReadFile(filepath.Join(l.Root(), "policies", "static", "admission-configuration.yaml"))
	must(t, err)
	text := strings.Replace(string(shipped), "staticManifestsDir: /etc/kubernetes/hostwarrant\n", "staticManifestsDir: "+w.static+"\n", 1)
	if text == string(shipped) {
		t.Fatal("policies/static/admission-configuration.yaml names another directory than the documentation")
	}
	return testkit.WriteFile(t, l.StateDir(), "admission.yaml", []byte(text))
}

func (w *guardWorld) kubectl(t *testing.T, stdin []byte, args ...string) lab.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	r, err := w.cp.Kubectl(ctx, bytes.NewReader(stdin), args...)
	must(t, err)
	return r
}

// allowed wants exit 0.
func (w *guardWorld) allowed(t *testing.T, stdin []byte, args ...string) lab.Result {
	t.Helper()
	r := w.kubectl(t, stdin, args...)
	if r.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// denied wants a refusal by the policy with the message.
func (w *guardWorld) denied(t *testing.T, policy, message string, stdin []byte, args ...string) {
	t.Helper()
	r := w.kubectl(t, stdin, args...)
	if r.Code == 0 {
		t.Fatalf("kubectl %s was admitted:\n%s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	if !deniedBy(r, policy, message) {
		t.Errorf("kubectl %s: not by %s with %q:\n%s", strings.Join(args, " "), policy, message, r.Stderr)
	}
}

func deniedBy(r lab.Result, policy, message string) bool {
	return strings.Contains(r.Stderr, "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request: "+message)
}

// inForce waits until the policy refuses what it must, as a dry run.
func (w *guardWorld) inForce(t *testing.T, policy, message string, stdin []byte, args ...string) {
	t.Helper()
	var last lab.Result
	defer func() {
		if t.Failed() {
			t.Logf("kubectl %s: exit %d\n%s%s", strings.Join(args, " "), last.Code, last.Stdout, last.Stderr)
		}
	}()
	eventually(t, policy+" to be in force", func() bool {
		last = w.kubectl(t, stdin, append(args, "--dry-run=server")...)
		return deniedBy(last, policy, message)
	})
}

// as are kubectl's flags to act as a user whom RBAC lets do anything, so that only admission decides.
func as(user string, groups ...string) []string {
	flags := []string{"--as=" + user, "--as-group=system:masters"}
	for _, g := range groups {
		flags = append(flags, "--as-group="+g)
	}
	return flags
}

// account is the user name of one of our ServiceAccounts.
func account(name string) string { return "system:serviceaccount:" + product.Namespace + ":" + name }

const breakGlass = "hostwarrant:break-glass"
