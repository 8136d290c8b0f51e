//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/e2e/storage"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// bundleWorld is the product in a lab of its own, beside one of the two homes of a ContainerProfile.
type bundleWorld struct {
	*installation
	// storage is the aggregated home; nil where profiles live in a CRD.
	storage          *storage.Server
	vendor, operator testkit.FragmentSigner
	options          product.Options
}

const shop = "shop"

func newBundleWorld(t *testing.T, aggregated bool) *bundleWorld {
	t.Helper()
	root := testkit.NewSigner(t, "ed25519")
	w := installBundles(t, aggregated, []byte(root.Line+"\n"), pool, shop)
	w.root, w.signer = root, testkit.NewSigner(t, "ed25519")
	w.vendor, w.operator = testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t)
	w.trust(t, "")
	must(t, w.webhook.Wait(t.Context(), "/readyz"))
	return w
}

// installBundles starts the product beside one home, under these roots and without a policy.
func installBundles(t *testing.T, aggregated bool, roots []byte, namespaces ...string) *bundleWorld {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	w := &bundleWorld{installation: &installation{cp: cp}}
	groups := []string{kubescape.Rules}
	if aggregated {
		w.storage = storage.Start(t, l, cp)
	} else {
		groups = append(groups, kubescape.Profiles)
	}
	must(t, kubescape.InstallCRDs(ctx, cp, groups...))
	w.options = product.Options{
		Lab: l, ControlPlane: cp, Roots: roots, ClusterID: "e2e", HostNamespaces: namespaces, UpstreamCRDs: product.UpstreamCRDs(t),
	}
	var err error
	w.product, err = product.Install(ctx, w.options)
	must(t, err)
	w.webhook, err = w.product.StartWebhook(ctx)
	must(t, err)
	w.startController(t)
	return w
}

func (w *bundleWorld) startController(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	var err error
	w.controller, err = w.product.StartControllerWith(ctx, "--rejudge-interval=20s")
	must(t, err)
}

// restart ends everything of ours, and the storage, and starts it again.
func (w *bundleWorld) restart(t *testing.T) { t.Helper(); w.restartAfter(t, func(context.Context) {}) }

// reinstall is restart after everything but the ledger was taken away: reports, rights and configurations.
func (w *bundleWorld) reinstall(t *testing.T) {
	t.Helper()
	w.restartAfter(t, func(ctx context.Context) {
		w.succeeds(t, nil, "delete", "profilebundle", "-n", shop, "--all")
		w.succeeds(t, nil, "delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "hostwarrant")
		w.succeeds(t, nil, "delete", "clusterrolebinding,clusterrole", "hostwarrant-controller", "hostwarrant-webhook")
		var err error
		w.product, err = product.Install(ctx, w.options)
		must(t, err)
	})
}

// leaderDies has another replica take over from one that had no time to say so.
func (w *bundleWorld) leaderDies(t *testing.T) {
	t.Helper()
	old := w.controller
	w.startController(t)
	must(t, old.Kill())
}

func (w *bundleWorld) restartAfter(t *testing.T, do func(context.Context)) {
	t.Helper()
	must(t, w.controller.Stop())
	must(t, w.webhook.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 2*stepLimit)
	defer cancel()
	do(ctx)
	if w.storage != nil {
		must(t, w.storage.Stop())
		must(t, w.storage.Resume(ctx))
	}
	var err error
	w.webhook, err = w.product.StartWebhook(ctx)
	must(t, err)
	w.startController(t)
	must(t, w.webhook.Wait(ctx, "/readyz"))
}

// trust puts the next version of the policy in force: base is the vendor's, admission and overlay the
// operator's, and more is added to the document.
func (w *bundleWorld) trust(t *testing.T, more string) {
	t.Helper()
	w.trustWith(t, fmt.Sprintf(`
fragmentClasses:
  base: {signers: [%q], allowedSpecPaths: ["*"]}
  admission: {signers: [%q], allowedSpecPaths: [ingress, egress]}
  overlay: {signers: [%q], allowedSpecPaths: [execs, opens]}
`, w.vendor.Fingerprint, w.operator.Fingerprint, w.operator.Fingerprint)+more)
}

func (w *bundleWorld) trustWith(t *testing.T, parts string) {
	t.Helper()
	w.version++
	w.document = policyDocument(t, w.version, w.signer) + parts
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, w.product.ApplyPolicy(ctx, testkit.WriteFile(t, t.TempDir(), "policy.json", w.trustPolicy(t, w.document, w.root))))
}

// part is a signed fragment of bundle redis.
func (w *bundleWorld) part(t *testing.T, s testkit.FragmentSigner, class, name string, version int, spec string) []byte {
	t.Helper()
	return s.Sign(t, fmt.Sprintf(`{apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1, kind: ContainerProfile, metadata: {name: %s, namespace: shop,
  labels: {signature.kubescape.io/bundle: redis, signature.kubescape.io/fragment-class: %s, signature.kubescape.io/version: "%d"}}, spec: %s}`, name, class, version, spec), true)
}

// The three fragments of the story.
func (w *bundleWorld) base(t *testing.T) []byte {
	return w.part(t, w.vendor, "base", "redis-base", 1, `{execs: [{path: /usr/bin/redis-server}], syscalls: [write, read], opens: [{path: /data/⋯, flags: [O_RDWR]}]}`)
}

func (w *bundleWorld) net(t *testing.T) []byte {
	return w.part(t, w.operator, "admission", "redis-net", 1, `{egress: [{identifier: dns, type: external, dns: example.org, ports: [{name: TCP-443, protocol: TCP, port: 443}]}]}`)
}

func (w *bundleWorld) site(t *testing.T) []byte {
	return w.part(t, w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/id}]}`)
}

// put stores an object over what is there, as somebody who replaces it whole.
func (w *bundleWorld) put(t *testing.T, o []byte) {
	t.Helper()
	w.succeeds(t, o, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// unguarded stores what admission would refuse: in the aggregated home nobody asks, and in the other
// one somebody takes the webhook away for a moment.
func (w *bundleWorld) unguarded(t *testing.T, do func()) {
	t.Helper()
	if w.storage == nil {
		was := w.succeeds(t, nil, "get", "validatingwebhookconfiguration", "hostwarrant", "-o", "json").Stdout
		w.succeeds(t, nil, "delete", "validatingwebhookconfiguration", "hostwarrant")
		defer func() {
			var o object
			must(t, json.Unmarshal([]byte(was), &o))
			if metadata, ok := o["metadata"].(object); ok {
				for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
					delete(metadata, field)
				}
			}
			w.succeeds(t, encode(t, o), "create", "-f", "-")
		}()
	}
	do()
}

// agent is a stand-in of kubescape's node agent: it reads one profile by the name in a pod's label
// kubescape.io/user-defined-profile, verifies nothing, and has no other profile for that pod.
type agent struct{ *bundleWorld }

// enforced is what the agent reads of a profile.
type enforced struct {
	Metadata struct {
		Labels, Annotations map[string]string
	}
	Spec json.RawMessage
}

// profile is what the agent would enforce; nil where there is none under that name.
func (a agent) profile(t *testing.T, name string) *enforced {
	t.Helper()
	r := a.kubectl(t, nil, "get", "containerprofile", "-n", shop, name, "-o", "json")
	if r.Code != 0 {
		return nil
	}
	var o enforced
	must(t, json.Unmarshal([]byte(r.Stdout), &o))
	if o.Metadata.Annotations["kubescape.io/managed-by"] != "User" || o.Metadata.Labels["signature.kubescape.io/fragment-class"] != "" {
		return &enforced{} // no agent takes it for a person's profile
	}
	return &o
}

// execs are the programs that the agent would let a pod run; "no profile" where it has none.
func (a agent) execs(t *testing.T) string {
	t.Helper()
	o := a.profile(t, "redis")
	if o == nil {
		return "no profile"
	}
	var spec struct{ Execs []struct{ Path string } }
	if len(o.Spec) > 0 {
		must(t, json.Unmarshal(o.Spec, &spec))
	}
	var paths []string
	for _, exec := range spec.Execs {
		paths = append(paths, exec.Path)
	}
	return strings.Join(paths, " ")
}

// becomes waits until the agent would let these programs run.
func (w *bundleWorld) becomes(t *testing.T, want string) {
	t.Helper()
	got := ""
	deadline := time.Now().Add(stepLimit)
	for got != want {
		if got = (agent{w}).execs(t); time.Now().After(deadline) {
			t.Fatalf("the agent lets run %q, want %q; the report says %s", got, want, w.report(t, "{.status}"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stays wants that the agent lets these programs run, now and a while after.
func (w *bundleWorld) stays(t *testing.T, want string) {
	t.Helper()
	for range 5 {
		if got := (agent{w}).execs(t); got != want {
			t.Fatalf("the agent lets run %q, want %q; the report says %s", got, want, w.report(t, "{.status}"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *bundleWorld) report(t *testing.T, path string) string {
	t.Helper()
	return w.kubectl(t, nil, "get", "profilebundle", "-n", shop, "redis", "-o", "jsonpath="+path).Stdout
}

// says waits until a condition of the bundle is "Status Reason".
func (w *bundleWorld) says(t *testing.T, condition, want string) {
	t.Helper()
	at := fmt.Sprintf(`{.status.conditions[?(@.type=="%s")]`, condition)
	got := ""
	deadline := time.Now().Add(stepLimit)
	for got != want {
		if got = w.report(t, at+".status} "+at+".reason}"); time.Now().After(deadline) {
			t.Fatalf("%s is %q, want %q; the report says %s", condition, got, want, w.report(t, "{.status}"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// events are the reasons of the events about the bundle.
func (w *bundleWorld) events(t *testing.T) []string {
	t.Helper()
	out := w.succeeds(t, nil, "get", "events", "-n", shop, "--field-selector", "involvedObject.kind=ProfileBundle", "-o", `jsonpath={range .items[*]}{.reason}{"\n"}{end}`).Stdout
	return strings.Fields(out)
}

func (w *bundleWorld) told(t *testing.T, reason string) {
	t.Helper()
	eventually(t, "an event "+reason, func() bool { return slices.Contains(w.events(t), reason) })
}
