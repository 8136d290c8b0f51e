//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// guardedKind is a kind and what every way of writing it is tried with.
type guardedKind struct {
	kind      string
	resource  schema.GroupVersionResource
	good, bad []byte // the same object, but for what is guarded
	merge     string // a merge patch that makes the good one bad
	patch     string // the same as a JSON patch
	reason    string // why the bad one is refused
	// fixed are the ways that change what the CRD's schema holds immutable, so that nobody is asked.
	fixed []string
	// kept says that it may not be deleted.
	kept bool
	// guard is the admission policy that lets none but our own programs write its status.
	guard string
	// versions are those served beside the stored one.
	versions []string
}

func (k *guardedKind) object(t *testing.T, raw []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, o.UnmarshalJSON(raw))
	return o
}

// way is one way of writing.
type way struct {
	name string
	// first says that the good object must be there before.
	first bool
	try   func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error
}

// Outcomes of a way, as the table shows them.
const (
	judged   = "judged"               // bad content is refused with its Reason, good content is admitted
	fixedBy  = "refused by schema"    // the CRD holds it immutable: nobody is asked
	harmless = "admitted, harmless"   // guarded content is the same before and after
	missing  = "no such sub-resource" //
	allowed  = "admitted"             //
	refused  = "refused by policy"    // the admission policy beside us, before we are asked
)

var dryRun = []string{metav1.DryRunAll}

// judgedWays are those that carry content.
func judgedWays() []way {
	patched := func(kind types.PatchType, dry []string) func(context.Context, *testing.T, *guardedKind, dynamic.ResourceInterface, []byte) error {
		return func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
			t.Helper()
			body := k.merge
			if kind == types.JSONPatchType {
				body = k.patch
			}
			o := k.object(t, raw)
			if strings.ReplaceAll(string(raw), "/v1alpha7", "/v1beta1") == string(k.good) { // the near miss: a patch that changes nothing guarded
				body = map[types.PatchType]string{types.MergePatchType: `{"metadata":{"labels":{"a":"b"}}}`, types.JSONPatchType: `[]`}[kind]
			}
			_, err := c.Patch(ctx, o.GetName(), kind, []byte(body), metav1.PatchOptions{DryRun: dry})
			return err
		}
	}
	return []way{
		{"create", false, func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
			t.Helper()
			_, err := c.Create(ctx, k.object(t, raw), metav1.CreateOptions{})
			return err
		}},
		{"create, dry run", false, func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
			t.Helper()
			_, err := c.Create(ctx, k.object(t, raw), metav1.CreateOptions{DryRun: dryRun})
			return err
		}},
		{"create, strict fields", false, func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
			t.Helper()
			_, err := c.Create(ctx, k.object(t, raw), metav1.CreateOptions{FieldValidation: "Strict"})
			return err
		}},
		{"update (PUT)", true, func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
			t.Helper()
			o := k.object(t, raw)
			stored, err := c.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			o.SetResourceVersion(stored.GetResourceVersion())
			_, err = c.Update(ctx, o, metav1.UpdateOptions{})
			return err
		}},
		{"patch, merge", true, patched(types.MergePatchType, nil)},
		{"patch, merge, dry run", true, patched(types.MergePatchType, dryRun)},
		{"patch, JSON", true, patched(types.JSONPatchType, nil)},
		{"server-side apply, creating", false, applied("first")},
		{"server-side apply by a second manager", true, applied("second")},
	}
}

func applied(manager string) func(context.Context, *testing.T, *guardedKind, dynamic.ResourceInterface, []byte) error {
	return func(ctx context.Context, t *testing.T, k *guardedKind, c dynamic.ResourceInterface, raw []byte) error {
		t.Helper()
		o := k.object(t, raw)
		_, err := c.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
}

// paths tries every way of writing one kind.
type paths struct {
	i     *installation
	t     *testing.T
	k     *guardedKind
	table *strings.Builder
}

func (p *paths) client(version string) dynamic.ResourceInterface {
	resource := p.k.resource
	if version != "" {
		resource.Version = version
	}
	return p.i.writer.Client().Resource(resource).Namespace(p.k.object(p.t, p.k.good).GetNamespace())
}

func (p *paths) row(way, outcome string) {
	fmt.Fprintf(p.table, "| %s | %s | %s |\n", p.k.kind, way, outcome)
}

// clear takes the object away; one that is kept stays.
func (p *paths) clear() {
	if !p.k.kept {
		err := p.client("").Delete(soon(p.t), p.k.object(p.t, p.k.good).GetName(), metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			must(p.t, err)
		}
	}
}

// store puts the good object there.
func (p *paths) store() {
	must(p.t, applied("first")(soon(p.t), p.t, p.k, p.client(""), p.k.good))
}

// judged tries a way with bad and with good content.
func (p *paths) judged(w way, version string) {
	label := w.name
	if version != "" {
		label += ", as " + version
	}
	if p.k.kept && !w.first {
		return // there is one already, and it cannot go: update and apply carry the same content
	}
	p.t.Run(p.k.kind+": "+label, func(t *testing.T) {
		good, bad := versioned(p.k.good, version), versioned(p.k.bad, version)
		p.clear()
		if w.first {
			p.store()
		}
		try := func(content []byte) error { // a controller may write the object's status meanwhile
			return retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.try(soon(t), t, p.k, p.client(version), content) })
		}
		err := try(bad)
		switch {
		case slices.Contains(p.k.fixed, w.name):
			if !apierrors.IsInvalid(err) {
				t.Fatalf("bad content: %v; want a refusal by the schema", err)
			}
			p.row(label, fixedBy)
		case harness.Judge(err) != harness.Refused || !strings.Contains(err.Error(), ": "+p.k.reason+": "):
			t.Fatalf("bad content: %v; want a denial with %s", err, p.k.reason)
		default:
			p.row(label, judged)
		}
		if err := try(good); err != nil {
			t.Fatalf("good content: %v", err)
		}
	})
}

// versioned is the object as another version of its kind.
func versioned(raw []byte, version string) []byte {
	if version == "" {
		return raw
	}
	return []byte(strings.Replace(string(raw), `/v1beta1"`, `/`+version+`"`, 1))
}

// generated creates bad content under a name that the API server makes up.
func (p *paths) generated() {
	if p.k.kept {
		return // its name is fixed
	}
	p.t.Run(p.k.kind+": create, generateName", func(t *testing.T) {
		for _, c := range []struct {
			raw []byte
			bad bool
		}{{p.k.bad, true}, {p.k.good, false}} {
			o := p.k.object(t, c.raw)
			o.SetName("")
			o.SetGenerateName("trial-generated-")
			made, err := p.client("").Create(soon(t), o, metav1.CreateOptions{})
			if c.bad && (harness.Judge(err) != harness.Refused || !strings.Contains(err.Error(), ": "+p.k.reason+": ")) {
				t.Fatalf("bad content: %v; want a denial with %s", err, p.k.reason)
			}
			if !c.bad {
				must(t, err)
				must(t, p.client("").Delete(soon(t), made.GetName(), metav1.DeleteOptions{}))
			}
		}
		p.row("create, generateName", judged)
	})
}

// subresources writes bad content to what lies beside the object.
func (p *paths) subresources() {
	for _, sub := range []string{"status", "scale", "finalize", "eviction"} {
		p.t.Run(p.k.kind+": /"+sub, func(t *testing.T) {
			p.store()
			name := p.k.object(t, p.k.good).GetName()
			before, err := p.client("").Get(soon(t), name, metav1.GetOptions{})
			must(t, err)
			_, err = p.client("").Patch(soon(t), name, types.MergePatchType, []byte(p.k.merge), metav1.PatchOptions{}, sub)
			after, getErr := p.client("").Get(soon(t), name, metav1.GetOptions{})
			must(t, getErr)
			if string(encode(t, before.Object["spec"])) != string(encode(t, after.Object["spec"])) {
				t.Fatalf("a write to /%s changed the spec", sub)
			}
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				p.row("patch of /"+sub, missing)
				return
			}
			if sub == "status" && p.k.guard != "" {
				if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+p.k.guard+"'") {
					t.Fatalf("%v; want a denial by %s", err, p.k.guard)
				}
				p.row("patch of /"+sub, refused)
				return
			}
			must(t, err)
			p.row("patch of /"+sub, harmless)
		})
	}
}

// deletions deletes by name and as a collection.
func (p *paths) deletions() {
	want := map[bool]string{true: refused, false: allowed}[p.k.kept]
	for _, c := range []struct {
		name   string
		delete func(context.Context, string) error
	}{
		{"delete, dry run", func(ctx context.Context, name string) error {
			return p.client("").Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
		}},
		{"delete", func(ctx context.Context, name string) error {
			return p.client("").Delete(ctx, name, metav1.DeleteOptions{})
		}},
		{"deletecollection", func(ctx context.Context, name string) error {
			return p.client("").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		}},
	} {
		p.t.Run(p.k.kind+": "+c.name, func(t *testing.T) {
			p.store()
			err := c.delete(soon(t), p.k.object(t, p.k.good).GetName())
			switch {
			case p.k.kept && (err == nil || !strings.Contains(err.Error(), "is not deleted while it guards")):
				t.Fatalf("%v; want a denial by the admission policy", err)
			case !p.k.kept:
				must(t, err)
			}
			p.row(c.name, want)
		})
	}
}

// guardedKinds are the kinds that the webhook configuration names.
func guardedKinds(t *testing.T, i *installation) []*guardedKind {
	t.Helper()
	signed := signatures(t, i.signer, scripts())
	spec := func(merge string) string { return `{"spec":` + merge + `}` }
	good := host(t, "trial-path", object{"trustedSigners": []string{i.signer.Line}})
	document := i.document
	policy := func(by ...testkit.Signer) []byte { return i.trustPolicy(t, document, by...) }
	said := i.hostStatement(t, "trial-path", 2, i.root)
	i.supersede(t, said)
	return []*guardedKind{
		{
			kind: "SSHJoinProfile", resource: harness.Profiles(), reason: "BytesChanged", versions: []string{"v1alpha7"},
			good:  profile(t, "trial-path", scripts(), signed),
			bad:   profile(t, "trial-path", join(func(s string) string { return s + "id\n" }), signed),
			merge: spec(`{"scripts":{"join":` + quoted(t, scripts()["join"]+"id\n") + `}}`),
			patch: `[{"op":"replace","path":"/spec/scripts/join","value":` + quoted(t, scripts()["join"]+"id\n") + `}]`,
		},
		{
			kind: "SSHHost", resource: harness.Hosts(), reason: "ShimCommandRefused", versions: []string{"v1alpha7"},
			good:  good,
			bad:   host(t, "trial-path", object{"trustedSigners": []string{i.signer.Line}, "shimCommand": "/bin/sh"}),
			merge: spec(`{"shimCommand":"/bin/sh"}`),
			patch: `[{"op":"add","path":"/spec/shimCommand","value":"/bin/sh"}]`,
		},
		{
			kind: "SSHNodeClass", resource: harness.NodeClasses(), reason: "ClusterRefused", versions: []string{"v1alpha7"},
			good:  nodeClass(t, "trial-path", nil),
			bad:   nodeClass(t, "trial-path", object{"cluster": object{"endpoint": foreignEndpoint}}),
			merge: spec(`{"cluster":{"endpoint":"` + foreignEndpoint + `"}}`),
			patch: `[{"op":"replace","path":"/spec/cluster/endpoint","value":"` + foreignEndpoint + `"}]`,
		},
		{
			kind: "HostRun", resource: hostRuns, reason: "NodeNameRefused", guard: "hostwarrant-hostrun-status",
			fixed: []string{"update (PUT)", "patch, merge", "patch, merge, dry run", "patch, JSON", "server-side apply by a second manager"},
			good:  hostRun(t, "trial-path", nil),
			bad:   hostRun(t, "trial-path", object{"nodeName": "control-plane-0"}),
			merge: spec(`{"nodeName":"control-plane-0"}`),
			patch: `[{"op":"replace","path":"/spec/nodeName","value":"control-plane-0"}]`,
		},
		{
			kind: "HostStatement", resource: hostStatements, reason: "ThresholdNotMet", guard: "hostwarrant-host-reports",
			good:  said,
			bad:   i.hostStatement(t, "trial-path", 2, i.signer),
			merge: spec(`{"signatures":` + string(encode(t, signaturesOf(t, i.hostStatement(t, "trial-path", 2, i.signer)))) + `}`),
			patch: `[{"op":"replace","path":"/spec/signatures","value":` + string(encode(t, signaturesOf(t, i.hostStatement(t, "trial-path", 2, i.signer)))) + `}]`,
		},
		{
			kind: "TrustPolicy", resource: trustPolicies, reason: "PolicyUnsigned", kept: true,
			good:  policy(i.root),
			bad:   policy(i.signer),
			merge: spec(`{"signatures":` + string(encode(t, signaturesOf(t, policy(i.signer)))) + `}`),
			patch: `[{"op":"replace","path":"/spec/signatures","value":` + string(encode(t, signaturesOf(t, policy(i.signer)))) + `}]`,
		},
	}
}

var (
	hostRuns      = schema.GroupVersionResource{Group: "hostwarrant.dev", Version: "v1alpha1", Resource: "hostruns"}
	trustPolicies = schema.GroupVersionResource{Group: "hostwarrant.dev", Version: "v1alpha1", Resource: "trustpolicies"}

	hostStatements = schema.GroupVersionResource{Group: "hostwarrant.dev", Version: "v1alpha1", Resource: "hoststatements"}
)

func quoted(t *testing.T, text string) string { t.Helper(); return string(encode(t, text)) }

// signaturesOf are those of the JSON of a TrustPolicy.
func signaturesOf(t *testing.T, raw []byte) []string {
	t.Helper()
	var o struct{ Spec struct{ Signatures []string } }
	must(t, json.Unmarshal(raw, &o))
	return o.Spec.Signatures
}

// hostStatement is the JSON of a HostStatement with a revocation of that serial, signed by the given key.
func (i *installation) hostStatement(t *testing.T, name string, serial int, by testkit.Signer) []byte {
	t.Helper()
	text := fmt.Sprintf("hostwarrant-statement: v1 revoke\nserial %d\nissued 1700000000\ncluster e2e\nrevoke SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0\nend\n", serial)
	return encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostStatement", "metadata": object{"name": name},
		"spec": object{"statement": text, "signatures": []string{testkit.Sign(t, by, statement.Namespace, []byte(text))}},
	})
}

// supersede stores the same statement under another name, so that this one may come and go.
func (i *installation) supersede(t *testing.T, raw []byte) {
	t.Helper()
	o := object{}
	must(t, json.Unmarshal(raw, &o))
	o["metadata"] = object{"name": newestStatement}
	i.succeeds(t, encode(t, o), "apply", "--server-side", "-f", "-")
	older := i.hostStatement(t, "trial-older", 1, i.root)
	eventually(t, "the webhook to know the statement", func() bool {
		return strings.Contains(i.kubectl(t, older, "create", "--dry-run=server", "-f", "-").Stderr, "SerialRollback")
	})
}

// newestStatement holds what stays.
const newestStatement = "trial-newest"

// TestTheNewestStatementIsNotTakenAway: who deletes a statement withholds it from the hosts that were away.
func TestTheNewestStatementIsNotTakenAway(t *testing.T) {
	i := install(t)
	raw := i.hostStatement(t, "trial-path", 2, i.root)
	i.supersede(t, raw)
	for name, args := range map[string][]string{
		"by name":         {"delete", "hoststatement", newestStatement},
		"as a dry run":    {"delete", "hoststatement", newestStatement, "--dry-run=server"},
		"with all others": {"delete", "hoststatements", "--all"},
		"by the account of the controller": {
			"--as=" + account("hostwarrant-controller"), "delete", "hoststatement", newestStatement,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := i.kubectl(t, nil, args...)
			if r.Code == 0 || !strings.Contains(r.Stderr, ": InUse: ") && !strings.Contains(r.Stderr, "deletes canaries only") {
				t.Errorf("exit %d, %s", r.Code, r.Stderr)
			}
		})
	}
	t.Run("while no webhook answers", func(t *testing.T) {
		i.balancer.Set()
		t.Cleanup(func() { i.balancer.Set(i.at) })
		if r := i.kubectl(t, nil, "delete", "hoststatement", newestStatement); r.Code == 0 || !strings.Contains(r.Stderr, "failed calling webhook") {
			t.Errorf("exit %d, %s", r.Code, r.Stderr)
		}
	})
	i.succeeds(t, nil, "get", "hoststatement", newestStatement)
}

// TestEveryWriteOfEveryGuardedKindIsJudged tries all ways of writing each kind and prints the table.
func TestEveryWriteOfEveryGuardedKindIsJudged(t *testing.T) {
	i := install(t)
	for _, crd := range []string{"sshjoinprofiles", "sshhosts", "sshnodeclasses"} {
		i.serveAlso(t, crd+"."+harness.Profiles().Group, "v1alpha7")
	}
	var table strings.Builder
	table.WriteString("| kind | way | outcome |\n|---|---|---|\n")
	for _, k := range guardedKinds(t, i) {
		p := &paths{i: i, t: t, k: k, table: &table}
		for _, w := range judgedWays() {
			for _, version := range append([]string{""}, k.versions...) {
				p.judged(w, version)
			}
		}
		p.generated()
		p.subresources()
		p.deletions()
		p.clear()
	}
	t.Log("\n" + table.String())
	if rows := strings.Count(table.String(), "\n") - 2; rows < 115 && !t.Failed() {
		t.Errorf("%d rows: a way was left out", rows)
	}
}

// serveAlso serves a CRD in one more version until the test ends. An admission policy keeps versions
// served, but for the group that is there for such cases.
func (i *installation) serveAlso(t *testing.T, crd, version string) {
	t.Helper()
	config := i.cp.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "lab-admin", Groups: []string{"system:masters", breakGlass}}
	w, err := harness.NewWriter(config)
	must(t, err)
	undo, err := w.ServeAlso(soon(t), crd, version)
	must(t, err)
	t.Cleanup(func() { must(t, undo(soon(t))) })
	resource := schema.GroupVersionResource{Group: harness.Profiles().Group, Version: version, Resource: strings.Split(crd, ".")[0]}
	eventually(t, "version "+version+" to be served", func() bool {
		_, err := i.writer.Client().Resource(resource).List(soon(t), metav1.ListOptions{})
		return err == nil
	})
}

// TestAnExpiredObjectCanStillBeHandled: what has expired can be labelled, released and deleted, and
// not be changed or used anew.
func TestAnExpiredObjectCanStillBeHandled(t *testing.T) {
	i := install(t)
	const name = "p-expired"
	raw := i.expiring(t, name)
	t.Run("its content is refused now", func(t *testing.T) {
		i.refused(t, []byte(strings.Replace(string(raw), name, name+"-again", 1)), []string{"create", "-f", "-"}, "WarrantMismatch")
		i.refused(t, nil, []string{"patch", "sshjoinprofile", name, "--type=merge", "-p", `{"spec":{"timeouts":{"join":"10m"}}}`}, "Expired")
	})
	for what, args := range map[string][]string{
		"labelled":         {"label", "sshjoinprofile", name, "a=b"},
		"annotated":        {"annotate", "sshjoinprofile", name, "a=b"},
		"given finalizers": {"patch", "sshjoinprofile", name, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`},
	} {
		t.Run("it can be "+what, func(t *testing.T) { i.succeeds(t, nil, args...) })
	}
	t.Run("it can be deleted, and released", func(t *testing.T) {
		i.succeeds(t, nil, "delete", "sshjoinprofile", name, "--wait=false")
		i.refused(t, nil, []string{"patch", "sshjoinprofile", name, "--type=merge", "-p", `{"spec":{"timeouts":{"join":"10m"}}}`}, "Expired")
		i.succeeds(t, nil, "label", "sshjoinprofile", name, "c=d")
		i.succeeds(t, nil, "patch", "sshjoinprofile", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		if r := i.kubectl(t, nil, "get", "sshjoinprofile", name); !strings.Contains(r.Stderr, "NotFound") {
			t.Errorf("it is still there: %s", r.Stdout)
		}
	})
}
