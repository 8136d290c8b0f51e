//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	slots "github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const learner = "system:serviceaccount:kubescape:node-agent"

// guild is the installation with kubescape's kinds as CRDs, in the namespace pay, and the keys that
// sign fragments of the bundle redis. No controller runs: it would assemble what is written here, as
// soon as it finds the kinds.
type guild struct {
	*installation
	vendor, operator testkit.FragmentSigner
}

// kinds are installed once and stay: a CRD that comes back under the name of one that went is not
// found for a while.
var kinds sync.Once

func newGuild(t *testing.T) *guild {
	t.Helper()
	g := &guild{install(t), testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t)}
	kinds.Do(func() {
		must(t, kubescape.InstallCRDs(soon(t), g.cp, kubescape.Profiles, kubescape.Rules))
		g.succeeds(t, nil, "create", "namespace", "pay")
	})
	g.withoutController(t)
	g.usualPolicy(t)
	g.classes(t, "")
	t.Cleanup(func() { g.succeeds(t, nil, "-n", "pay", "delete", "--all", "containerprofiles,seccompprofiles,rules") })
	return g
}

// classes puts a policy with classes and more text in force.
func (g *guild) classes(t *testing.T, more string) {
	t.Helper()
	g.newPolicy(t, func(document string) string {
		return document + fmt.Sprintf(`fragmentClasses:
  base: {signers: [%[1]q], allowedSpecPaths: [execs, opens, seccompProfile], values: {execs: ["/usr/bin/*"]}}
  overlay: {signers: [%[2]q], allowedSpecPaths: [execs]}
ruleClasses:
  base: {signers: [%[1]q], allowedRuleIDs: ["*"]}
  overlay: {signers: [%[2]q], allowedRuleIDs: [R0001]}
bindingClasses:
  base: {signers: [%[1]q]}
learners: [%[3]q]
`, g.vendor.Fingerprint, g.operator.Fingerprint, learner) + more
	}, g.signer)
}

// carrier is an object of one of kubescape's kinds, to be signed.
func carrier(t *testing.T, kind, name string, labels, spec object) string {
	t.Helper()
	metadata := object{"name": name}
	if kind != fragment.KindRuleBinding {
		metadata["namespace"] = "pay"
	}
	all := object{}
	for label, value := range labels {
		all["signature.kubescape.io/"+label] = value
	}
	if len(all) > 0 {
		metadata["labels"] = all
	}
	return string(encode(t, object{"apiVersion": fragment.APIVersionOf(kind), "kind": kind, "metadata": metadata, "spec": spec}))
}

// redisBase is a version of the bundle's base.
func redisBase(t *testing.T, version, exec string) string {
	t.Helper()
	return carrier(t, fragment.KindContainerProfile, "redis-base",
		object{"bundle": "redis", "fragment-class": "base", "version": version}, object{"execs": []object{{"path": exec}}})
}

// changedObject is the object with a change.
func changedObject(t *testing.T, raw []byte, change func(o, metadata object)) []byte {
	t.Helper()
	var o object
	must(t, json.Unmarshal(raw, &o))
	metadata, ok := o["metadata"].(object)
	if !ok {
		t.Fatal("no metadata")
	}
	change(o, metadata)
	return encode(t, o)
}

// resourceOf is where a kind is served.
func resourceOf(kind string) schema.GroupVersionResource {
	group, version, _ := strings.Cut(fragment.APIVersionOf(kind), "/")
	return schema.GroupVersionResource{Group: group, Version: version, Resource: map[string]string{
		fragment.KindContainerProfile: "containerprofiles", fragment.KindSeccompProfile: "seccompprofiles",
		fragment.KindRules: "rules", fragment.KindRuleBinding: "runtimerulealertbindings",
	}[kind]}
}

// fragmentKinds are kubescape's kinds with an object that is signed, and one whose spec was changed beside the signature.
func (g *guild) fragmentKinds(t *testing.T) []*guardedKind {
	t.Helper()
	of := func(kind string, labels, spec, bad object) *guardedKind {
		good := g.vendor.Sign(t, carrier(t, kind, "trial-path", labels, spec), true)
		var steps []object
		for name, value := range bad {
			steps = append(steps, object{"op": "replace", "path": "/spec/" + name, "value": value})
		}
		return &guardedKind{
			kind: kind, resource: resourceOf(kind), reason: "Tampered", good: good,
			bad:   changedObject(t, good, func(o, _ object) { o["spec"] = bad }),
			merge: string(encode(t, object{"spec": bad})), patch: string(encode(t, steps)),
		}
	}
	base := object{"bundle": "redis", "fragment-class": "base", "version": "1"}
	plain := object{"fragment-class": "base"}
	return []*guardedKind{
		of(fragment.KindContainerProfile, base, object{"execs": []object{{"path": "/usr/bin/id"}}}, object{"execs": []object{{"path": "/bin/sh"}}}),
		of(fragment.KindRules, plain, object{"rules": []object{{"enabled": true, "id": "R0001", "name": "x"}}}, object{"rules": []object{{"enabled": false, "id": "R0001", "name": "x"}}}),
		of(fragment.KindRuleBinding, plain, object{"rules": []object{{"ruleID": "R0001"}}}, object{"rules": []object{{"ruleID": "R0002"}}}),
		of(fragment.KindSeccompProfile, plain, object{"spec": object{"defaultAction": "SCMP_ACT_ERRNO"}}, object{"spec": object{"defaultAction": "SCMP_ACT_ALLOW"}}),
	}
}

// TestEveryWriteOfAFragmentIsJudged is TestEveryWriteOfEveryGuardedKindIsJudged for kubescape's kinds.
func TestEveryWriteOfAFragmentIsJudged(t *testing.T) {
	g := newGuild(t)
	var table strings.Builder
	table.WriteString("| kind | way | outcome |\n|---|---|---|\n")
	for _, k := range g.fragmentKinds(t) {
		p := &paths{i: g.installation, t: t, k: k, table: &table}
		for _, w := range judgedWays() {
			p.judged(w, "")
		}
		p.subresources()
		p.deletions()
		p.clear()
	}
	t.Log("\n" + table.String())
	if rows := strings.Count(table.String(), "\n") - 2; rows < 60 && !t.Failed() {
		t.Errorf("%d rows: a way was left out", rows)
	}
}

// TestWhatIsDoneToAStoredFragment goes through what whoever may write an object may try with a signed one.
func TestWhatIsDoneToAStoredFragment(t *testing.T) {
	g := newGuild(t)
	signed := g.vendor.Sign(t, redisBase(t, "2", "/usr/bin/redis-server"), true)
	g.succeeds(t, signed, "apply", "--server-side", "-f", "-")
	const base = "containerprofile/redis-base"
	pay := func(args ...string) []string { return append([]string{"-n", "pay"}, args...) }
	annotation := fragment.AnnotationSignature
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"another class":                   {pay("label", base, fragment.LabelClass+"=overlay", "--overwrite"), "Tampered"},
		"another bundle":                  {pay("label", base, fragment.LabelBundle+"=mysql", "--overwrite"), "Tampered"},
		"no bundle":                       {pay("label", base, fragment.LabelBundle+"-"), "Tampered"},
		"another version":                 {pay("label", base, fragment.LabelVersion+"=9", "--overwrite"), "Tampered"},
		"one more label of kubescape":     {pay("label", base, "kubescape.io/workload-name=x"), "Tampered"},
		"no signature":                    {pay("annotate", base, annotation+"-"), "Unsigned"},
		"a signature of nothing":          {pay("annotate", base, annotation+"=AAAA", "--overwrite"), "Tampered"},
		"no embedded content, as written": {pay("annotate", base, fragment.AnnotationContent+"-"), ""},
		"a person's":                      {pay("annotate", base, "kubescape.io/managed-by=User"), ""},
		"a label of a tool":               {pay("label", base, "app.kubernetes.io/instance=redis"), ""},
		"an annotation of a tool":         {pay("annotate", base, "argocd.argoproj.io/tracking-id=redis"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.says != "" {
				g.refused(t, nil, c.args, "ContainerProfile/redis-base: ", ": "+c.says+": ", "; hint: ")
				return
			}
			g.succeeds(t, nil, append(c.args, "--dry-run=server")...)
		})
	}
	t.Run("carried under another name", func(t *testing.T) {
		g.refused(t, changedObject(t, signed, func(_, m object) { m["name"] = "redis-base-2" }), []string{"create", "-f", "-"}, "Tampered")
	})
	t.Run("carried to another namespace", func(t *testing.T) {
		g.succeeds(t, changedObject(t, signed, func(_, m object) { m["namespace"] = "default" }), "create", "--dry-run=server", "-f", "-")
	})
	t.Run("on a carrier of another kind", func(t *testing.T) {
		var o struct{ Metadata struct{ Annotations object } }
		must(t, json.Unmarshal(signed, &o))
		rules := carrier(t, fragment.KindRules, "redis-base", object{"bundle": "redis", "fragment-class": "base", "version": "2"}, object{"rules": []object{{"enabled": true, "id": "R0001"}}})
		g.refused(t, changedObject(t, []byte(rules), func(_, m object) { m["annotations"] = o.Metadata.Annotations }), []string{"create", "-f", "-"}, "KindMismatch")
	})
	t.Run("an older version", func(t *testing.T) {
		g.refused(t, g.vendor.Sign(t, redisBase(t, "1", "/usr/bin/redis-server"), true), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "VersionRollback")
	})
	t.Run("other content under its version", func(t *testing.T) {
		g.refused(t, g.vendor.Sign(t, redisBase(t, "2", "/usr/bin/id"), true), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "VersionEquivocated")
	})
	t.Run("a version far ahead", func(t *testing.T) {
		g.refused(t, g.vendor.Sign(t, redisBase(t, "1003", "/usr/bin/id"), true), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "SerialJump")
	})
	t.Run("a value that its class does not allow", func(t *testing.T) {
		g.refused(t, g.vendor.Sign(t, redisBase(t, "3", "/usr/⋯/id"), true), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}, "ValueRefused")
	})
	t.Run("the next version", func(t *testing.T) {
		g.succeeds(t, g.vendor.Sign(t, redisBase(t, "3", "/usr/bin/id"), true), "apply", "--server-side", "--force-conflicts", "-f", "-")
	})
	t.Run("deleted, and an older version made anew", func(t *testing.T) {
		g.succeeds(t, nil, pay("delete", base)...)
		three := g.remembered(t, redisBase(t, "3", "/usr/bin/id"))
		eventually(t, "the ledger to be read", func() bool {
			r := g.kubectl(t, signed, "create", "-f", "-", "--dry-run=server")
			return strings.Contains(r.Stderr, ": VersionRollback: ")
		})
		g.succeeds(t, three, "create", "-f", "-")
	})
}

// remembered writes what the controller would write of a fragment that was seen, as its account, and
// gives the signed object.
func (g *guild) remembered(t *testing.T, text string) []byte {
	t.Helper()
	raw := g.vendor.Sign(t, text, true)
	o, err := fragment.Parse(raw)
	must(t, err)
	f, err := fragment.Verify(o)
	must(t, err)
	name := slots.SlotsName("pay", f.Bundle, 0)
	record := object{"slots": object{"namespace": "pay", "bundle": f.Bundle, "marks": object{
		f.Class + "/" + f.Name: object{"version": f.Version, "digest": f.Digest, "bytes": f.Bytes},
	}}}
	g.succeeds(t, encode(t, object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "Ledger", "metadata": object{"name": name}, "spec": record}),
		append(as(account("hostwarrant-controller")), "apply", "--server-side", "--force-conflicts", "-f", "-")...)
	t.Cleanup(func() { g.succeeds(t, nil, append(as("lab-admin", breakGlass), "delete", "ledger", name)...) })
	return raw
}

// TestAgentsAndComposites: an agent writes what it learns, the controller what it assembles, and nobody the other's.
func TestAgentsAndComposites(t *testing.T) {
	g := newGuild(t)
	g.classes(t, "bundles: {redis: {required: [{class: base, name: redis-base}]}}\n")
	flat := func(name string, annotations object) []byte {
		raw := carrier(t, fragment.KindContainerProfile, name, nil, object{"execs": []object{{"path": "/usr/sbin/nginx"}}})
		return changedObject(t, []byte(raw), func(_, m object) { m["annotations"] = annotations })
	}
	user := object{"kubescape.io/managed-by": "User"}
	composite := object{"kubescape.io/managed-by": "User", "hostwarrant.dev/merkle-root": strings.Repeat("a", 64)}
	agent, controller := as(learner), as(account("hostwarrant-controller"))
	create := []string{"create", "-f", "-"}
	g.succeeds(t, flat("nginx-1", nil), append(agent, create...)...)
	g.succeeds(t, nil, append(agent, "-n", "pay", "patch", "containerprofile", "nginx-1", "--type=merge", "-p", `{"spec":{"execs":[{"path":"/bin/ls"}]}}`)...)
	g.refused(t, flat("nginx-2", nil), create, "Unsigned")
	g.refused(t, nil, []string{"-n", "pay", "patch", "containerprofile", "nginx-1", "--type=merge", "-p", `{"spec":{"execs":[{"path":"/bin/sh"}]}}`}, "Unsigned")
	g.refused(t, nil, []string{"-n", "pay", "annotate", "containerprofile", "nginx-1", "kubescape.io/managed-by=User"}, "Unsigned")
	g.refused(t, nil, append(agent, "-n", "pay", "annotate", "containerprofile", "nginx-1", "kubescape.io/managed-by=User"), "Unsigned")
	g.refused(t, flat("nginx-2", user), append(agent, create...), "Unsigned")
	g.refused(t, flat("redis", nil), append(agent, create...), "CompositeForeign")
	g.refused(t, flat("redis", composite), create, "CompositeForeign")
	g.succeeds(t, flat("redis", composite), append(controller, create...)...)
	g.refused(t, nil, []string{"-n", "pay", "patch", "containerprofile", "redis", "--type=merge", "-p", `{"spec":{"execs":[{"path":"/bin/sh"}]}}`}, "CompositeForeign")
	g.refused(t, nil, append(agent, "-n", "pay", "patch", "containerprofile", "redis", "--type=merge", "-p", `{"spec":{"execs":[{"path":"/bin/sh"}]}}`), "CompositeForeign")
	g.succeeds(t, nil, append(controller, "-n", "pay", "patch", "containerprofile", "redis", "--type=merge", "-p", `{"spec":{"execs":[{"path":"/usr/bin/id"}]}}`)...)
	// the policy of the API, which holds while no webhook answers, is asked first
	if r := g.kubectl(t, flat("web", nil), append(controller, create...)...); r.Code == 0 || !strings.Contains(r.Stderr, "ValidatingAdmissionPolicy 'hostwarrant-composites'") {
		t.Errorf("a profile of the controller's that is no composite: %s%s", r.Stdout, r.Stderr)
	}
	g.succeeds(t, nil, "-n", "pay", "delete", "containerprofile", "redis", "nginx-1")
}

// TestADivergentSpecIsWarnedOfInModeWarn: the paths are named, and never what they hold.
func TestADivergentSpecIsWarnedOfInModeWarn(t *testing.T) {
	g := newGuild(t)
	signed := g.vendor.Sign(t, redisBase(t, "2", "/usr/bin/redis-server"), true)
	edited := changedObject(t, signed, func(o, _ object) {
		o["spec"] = object{"execs": []object{{"path": "/usr/bin/hidden"}}, "opens": []object{{"path": "/etc/hidden"}}}
	})
	g.refused(t, edited, []string{"create", "-f", "-"}, "Tampered", "execs, opens")
	g.warnMode(t)
	r := g.succeeds(t, edited, "create", "-f", "-")
	if !strings.Contains(r.Stderr, "would refuse") || !strings.Contains(r.Stderr, "execs, opens") || strings.Contains(r.Stderr, "hidden") {
		t.Errorf("the warning says %q", r.Stderr)
	}
}

// warnMode puts the present policy in force again with mode warn, under the next version.
func (g *guild) warnMode(t *testing.T) {
	t.Helper()
	until := time.Now().Add(20 * 24 * time.Hour).UTC().Format(time.RFC3339)
	g.offer(t, strings.NewReplacer(
		fmt.Sprintf("version: %d\n", g.version), fmt.Sprintf("version: %d\n", g.version+1),
		"mode: enforce", fmt.Sprintf("mode: warn\nwarnUntil: %q", until),
	).Replace(g.document))
	eventually(t, "mode warn", func() bool { return policyVersion(t, g.webhook.Health) == g.version })
}

// TestALargeProfileIsJudgedAndReleased: conditions and limits have room for a container that opens many files.
func TestALargeProfileIsJudgedAndReleased(t *testing.T) {
	g := newGuild(t)
	var opens []object
	for n := range 8000 {
		opens = append(opens, object{"path": fmt.Sprintf("/usr/lib/x86_64-linux-gnu/library-%05d.so", n), "flags": []string{"O_RDONLY", "O_CLOEXEC"}})
	}
	raw := carrier(t, fragment.KindContainerProfile, "large", nil, object{"opens": opens})
	agent := as(learner)
	g.succeeds(t, []byte(raw), append(agent, "create", "-f", "-")...)
	g.succeeds(t, nil, append(agent, "-n", "pay", "patch", "containerprofile", "large", "--type=json", "-p", `[{"op":"replace","path":"/spec/opens/7999/path","value":"/x"}]`)...)
	g.succeeds(t, nil, "-n", "pay", "annotate", "containerprofile", "large", "example.com/x=y") // not guarded
	g.refused(t, nil, []string{"-n", "pay", "patch", "containerprofile", "large", "--type=json", "-p", `[{"op":"replace","path":"/spec/opens/0/path","value":"/x"}]`}, "Unsigned")
}

// TestKubescapesCRDsConvertNothing: a conversion webhook could show an agent other content than was judged.
func TestKubescapesCRDsConvertNothing(t *testing.T) {
	g := newGuild(t)
	crd := resourceOf(fragment.KindContainerProfile)
	name := crd.Resource + "." + crd.Group
	conversion := `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://192.0.2.1/convert"}}}}}`
	r := g.kubectl(t, nil, "patch", "crd", name, "--type=merge", "-p", conversion)
	if r.Code == 0 || !strings.Contains(r.Stderr, "hostwarrant-crds") || !strings.Contains(r.Stderr, "no conversion webhook") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	scale := `[{"op":"add","path":"/spec/versions/0/subresources","value":{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.a"}}}]`
	r = g.kubectl(t, nil, "patch", "crd", name, "--type=json", "-p", scale)
	if r.Code == 0 || !strings.Contains(r.Stderr, "gets no scale sub-resource") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
	g.succeeds(t, nil, "label", "crd", name, "a=b")
}

// TestAFragmentIsWrittenInTheVersionThatWasSigned: another served version is judged too, and is not the signed one.
func TestAFragmentIsWrittenInTheVersionThatWasSigned(t *testing.T) {
	g := newGuild(t)
	config := g.cp.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "lab-admin", Groups: []string{"system:masters", breakGlass}}
	w, err := harness.NewWriter(config)
	must(t, err)
	resource := resourceOf(fragment.KindContainerProfile)
	undo, err := w.ServeAlso(soon(t), resource.Resource+"."+resource.Group, "v1")
	must(t, err)
	t.Cleanup(func() { must(t, undo(soon(t))) })
	resource.Version = "v1"
	eventually(t, "version v1 to be served", func() bool {
		_, err := g.writer.Client().Resource(resource).List(soon(t), metav1.ListOptions{})
		return err == nil
	})
	signed := g.vendor.Sign(t, redisBase(t, "2", "/usr/bin/redis-server"), true)
	other := changedObject(t, signed, func(o, _ object) { o["apiVersion"] = resource.Group + "/v1" })
	g.refused(t, other, []string{"create", "-f", "-"}, "KindMismatch")
	g.refused(t, changedObject(t, other, func(_, m object) { delete(m, "annotations") }), []string{"create", "-f", "-"}, "KindMismatch")
	g.succeeds(t, signed, "create", "-f", "-")
}
