//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// recoveryLimit is what the documentation promises for break-glass.
const recoveryLimit = 5 * time.Minute

// documented are the commands of the blocks marked sh below a heading of a page of docs/operations.
func documented(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "operations", page))
	must(t, err)
	var commands strings.Builder
	under, inside := heading == "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case !inside && strings.HasPrefix(line, "## "):
			under = strings.TrimSpace(strings.TrimPrefix(line, "## ")) == heading
		case !inside && under && line == "```sh\n":
			inside = true
		case inside && line == "```\n":
			inside = false
		case inside:
			commands.WriteString(line)
		}
	}
	if commands.Len() == 0 {
		t.Fatalf("%s has no commands under %q", page, heading)
	}
	return commands.String()
}

// operationsWorld is a whole installation that may be taken apart.
type operationsWorld struct {
	*installation
	kustomization string
}

func newOperationsWorld(t *testing.T) *operationsWorld {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{Audit: true})
	i := &installation{cp: cp, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	i.document = policyDocument(t, 1, i.signer)
	var err error
	i.product, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: cp, Roots: []byte(i.root.Line + "\n"), ClusterID: "e2e", HostNamespaces: []string{pool}, UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	file := testkit.WriteFile(t, t.TempDir(), "policy.json", i.trustPolicy(t, i.document, i.root))
	i.webhook, err = i.product.StartWebhook(ctx)
	must(t, err)
	i.controller, err = i.product.StartControllerWith(ctx, "--canary-interval="+canaryEvery.String()) // a minute is the rule
	must(t, err)
	must(t, i.product.ApplyPolicy(ctx, file))
	_, err = i.product.StartRelay(ctx)
	must(t, err)
	return &operationsWorld{i, i.kustomization(t, l)}
}

// kustomization is what $HOSTWARRANT names here: the overlay with this lab's address in it.
func (i *installation) kustomization(t *testing.T, l *lab.Lab) string {
	t.Helper()
	rendered := i.succeeds(t, nil, "kustomize", filepath.Join(l.Root(), "manifests", "overlays", "out-of-cluster")).Stdout
	dir := filepath.Join(l.StateDir(), "hostwarrant")
	testkit.WriteFile(t, dir, "all.yaml", []byte(strings.ReplaceAll(rendered, "192.0.2.1", l.Addr().String())))
	testkit.WriteFile(t, dir, "kustomization.yaml", []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [all.yaml]\n"))
	return dir
}

// follow runs documented commands in a shell, as somebody who copies them would.
func (w *operationsWorld) follow(t *testing.T, commands string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), recoveryLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eux", "-c", commands)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(w.cp.KubectlPath)+":"+os.Getenv("PATH"), "KUBECONFIG="+w.cp.Kubeconfig, "KUBECACHEDIR="+t.TempDir(),
		"HOSTWARRANT="+w.kustomization)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the documented commands: %v\n%s", err, out)
	}
}

// deletions are the audit log's records of deletions of one resource by the lab's administrator.
func (w *operationsWorld) deletions(t *testing.T, resource string) (names []string) {
	t.Helper()
	f, err := os.Open(w.cp.AuditLog)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e struct {
			Level, Verb, Stage string
			User               struct{ Username string }
			ObjectRef          struct{ Resource, Name string }
			RequestObject      json.RawMessage
		}
		must(t, json.Unmarshal(lines.Bytes(), &e))
		if e.Level != "Metadata" || len(e.RequestObject) > 0 {
			t.Errorf("an audit record of level %s", e.Level)
		}
		if e.Verb == "delete" && e.ObjectRef.Resource == resource && e.User.Username == "lab-admin" && e.Stage == "ResponseComplete" {
			names = append(names, e.ObjectRef.Name)
		}
	}
	must(t, lines.Err())
	return names
}

// Break-glass and uninstall, by the commands that are documented and no others.
func TestDocumentedOperations(t *testing.T) {
	w := newOperationsWorld(t)
	unsigned := profile(t, "emergency", scripts(), nil)
	w.refused(t, unsigned, []string{"create", "-f", "-"}, "SSHJoinProfile/emergency: install: Unsigned: ")
	within(t, recoveryLimit, "admission to be known to be in the path", func() bool { return strings.HasPrefix(w.inPath(t), "True") })
	t.Run("break-glass", func(t *testing.T) {
		w.follow(t, documented(t, "break-glass.md", "Remove the guards"))
		eventually(t, "the unsigned profile to be admitted", func() bool { return w.kubectl(t, unsigned, "create", "-f", "-").Code == 0 })
		for resource, want := range map[string]string{
			"validatingwebhookconfigurations": "hostwarrant", "mutatingwebhookconfigurations": "hostwarrant",
			"validatingadmissionpolicybindings": "hostwarrant-ledger",
		} {
			if got := w.deletions(t, resource); !slices.Contains(got, want) {
				t.Errorf("the audit log records %q as deleted of %s; want %s", got, resource, want)
			}
		}
		within(t, recoveryLimit, "the alarm", func() bool { return strings.HasPrefix(w.inPath(t), "False ") })
		eventually(t, "kubectl describe to show the alarm", func() bool {
			_, events, _ := strings.Cut(w.succeeds(t, nil, "describe", "trustpolicy", "cluster").Stdout, "\nEvents:")
			return strings.Contains(events, "admission is not shown to be in the path")
		})
		w.stays(t)
		if got := w.inPath(t); !strings.HasPrefix(got, "False ") {
			t.Errorf("the alarm went off by itself: %s", got)
		}
	})
	t.Run("close up", func(t *testing.T) {
		began := time.Now()
		w.follow(t, documented(t, "break-glass.md", "Put the guards back"))
		w.succeeds(t, nil, "delete", "sshjoinprofile", "emergency")
		w.refused(t, unsigned, []string{"create", "-f", "-"}, "SSHJoinProfile/emergency: install: Unsigned: ")
		last := w.inPath(t)
		for strings.HasPrefix(last, "False") && time.Since(began) < recoveryLimit {
			time.Sleep(500 * time.Millisecond)
			last = w.inPath(t)
		}
		if !strings.HasPrefix(last, "True") {
			t.Errorf("the alarm does not end: %s", last)
		}
		took := time.Since(began)
		if took > recoveryLimit {
			t.Errorf("recovery took %s; promised are %s", took, recoveryLimit)
		}
		t.Logf("recovered in %s", took.Round(100*time.Millisecond))
		eventually(t, "the policies to hold again", func() bool {
			return strings.Contains(w.kubectl(t, nil, "delete", "trustpolicy", "cluster", "--dry-run=server").Stderr, "hostwarrant")
		})
	})
	t.Run("uninstall", func(t *testing.T) {
		began := time.Now()
		w.uninstall(t)
		t.Logf("uninstalled in %s", time.Since(began).Round(100*time.Millisecond))
	})
}

// inPath is "status reason: message" of the condition by which a lost guard is told.
func (w *operationsWorld) inPath(t *testing.T) string {
	t.Helper()
	return w.succeeds(t, nil, "get", "trustpolicy", "cluster", "-o",
		`jsonpath={range .status.conditions[?(@.type=="AdmissionInPath")]}{.status} {.reason}: {.message}{end}`).Stdout
}

// stays shows for a while that nothing of ours puts back what was removed.
func (w *operationsWorld) stays(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if r := w.succeeds(t, nil, "get", "validatingwebhookconfiguration,mutatingwebhookconfiguration,validatingadmissionpolicybinding", "-l", "app.kubernetes.io/part-of=hostwarrant", "-o", "name"); r.Stdout != "" {
			t.Fatalf("somebody put back %s", r.Stdout)
		}
	}
}

func (w *operationsWorld) uninstall(t *testing.T) {
	t.Helper()
	run := encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "metadata": object{"name": "left-over", "namespace": pool, "finalizers": []string{}},
		"spec": object{"hostRef": object{"name": "h"}, "profileRef": object{"name": "p"}, "phase": "install"},
	})
	w.kubectl(t, run, "create", "-f", "-") // admitted or not: nothing may hold the rest up
	w.follow(t, documented(t, "uninstall.md", ""))
	for _, kind := range []string{
		"validatingwebhookconfiguration", "mutatingwebhookconfiguration", "validatingadmissionpolicy", "validatingadmissionpolicybinding",
		"clusterrole", "clusterrolebinding", "crd", "role --all-namespaces", "rolebinding --all-namespaces",
	} {
		args := append([]string{"get"}, strings.Fields(kind)...)
		if r := w.succeeds(t, nil, append(args, "-l", "app.kubernetes.io/part-of=hostwarrant", "-o", "name")...); r.Stdout != "" {
			t.Errorf("left over: %s", r.Stdout)
		}
	}
	if r := w.kubectl(t, nil, "get", "namespace", product.Namespace); r.Code == 0 {
		t.Error("the namespace is left over")
	}
	w.succeeds(t, profile(t, "after", scripts(), nil), "create", "-f", "-")
	w.succeeds(t, nil, "delete", "sshjoinprofile", "after")
}
