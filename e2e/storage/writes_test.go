//go:build linux

package storage

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// everything of both groups, which is what the two below refuse.
const everything = `[{apiGroups: [spdx.softwarecomposition.kubescape.io, kubescape.io], apiVersions: ["*"], resources: ["*"], operations: ["*"]}]`

const refusingWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse-kubescape}
webhooks:
- name: refuse.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  clientConfig: {service: {namespace: default, name: nobody}}
  rules: ` + everything + "\n"

const refusingPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-kubescape}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: ` + everything + `}
  validations: [{expression: "false", message: the policy says no}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-kubescape}
spec: {policyName: refuse-kubescape, validationActions: [Deny]}
`

// The same guard in the other home, a CRD's, shows that it is in force.
func TestNoAdmissionIsAsked(t *testing.T) {
	w := newWorld(t)
	must(t, kubescape.InstallCRDs(t.Context(), w.cp, kubescape.Rules))
	t.Cleanup(func() { must(t, kubescape.RemoveCRDs(context.Background(), w.cp, kubescape.Rules)) })
	for refusal, guard := range map[string]string{"refuse.example.com": refusingWebhook, "the policy says no": refusingPolicy} {
		t.Run(refusal, func(t *testing.T) {
			w.succeeds(t, guard, "apply", "-f", "-")
			defer w.succeeds(t, guard, "delete", "-f", "-")
			rules := `{"apiVersion": "kubescape.io/v1", "kind": "Rules", "metadata": {"name": "r", "namespace": "` + w.namespace + `"}}`
			eventually(t, "the guard", func() bool {
				r, err := w.cp.Kubectl(t.Context(), strings.NewReader(rules), "create", "--dry-run=server", "-f", "-")
				must(t, err)
				return r.Code != 0 && strings.Contains(r.Stderr, refusal)
			})
			w.writeInEveryWay(t)
		})
	}
}

// writeInEveryWay creates, replaces, patches, applies and deletes a profile.
func (w *world) writeInEveryWay(t *testing.T) {
	t.Helper()
	o := w.create(t, object(t, "one", "created", `{}`))
	o.SetLabels(map[string]string{"is": "replaced"})
	_, err := w.profiles().Update(t.Context(), o, metav1.UpdateOptions{})
	must(t, err)
	_, err = w.profiles().Update(t.Context(), o, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("replacing an older version: %v", err)
	}
	force := true
	for path, p := range map[string]struct {
		kind    types.PatchType
		options metav1.PatchOptions
		patch   string
	}{
		"/merged":  {kind: types.MergePatchType, patch: `{"spec":{"execs":[{"path":"/merged"}]}}`},
		"/patched": {kind: types.JSONPatchType, patch: `[{"op":"replace","path":"/spec/execs","value":[{"path":"/patched"}]}]`},
		"/applied": {
			kind: types.ApplyPatchType, options: metav1.PatchOptions{FieldManager: "test", Force: &force},
			patch: `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"one"},"spec":{"execs":[{"path":"/applied"}]}}`,
		},
	} {
		_, err := w.profiles().Patch(t.Context(), "one", p.kind, []byte(p.patch), p.options)
		must(t, err)
		if got := spec(t, w.get(t, "one")); !strings.Contains(got, `"execs":[{"path":"`+path+`"}]`) {
			t.Errorf("after %s: %s", p.patch, got)
		}
	}
	must(t, w.profiles().Delete(t.Context(), "one", metav1.DeleteOptions{}))
	if _, err := w.profiles().Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestStoredSpecIsInNormalForm(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ sent, changes string }{
		"empty":               {`{}`, `{}`},
		"empty-lists":         {`{"execs":[],"syscalls":[],"opens":[],"endpoints":[],"ingress":[]}`, `{}`},
		"empty-rule-policies": {`{"rulePolicies":{}}`, `{"rulePolicies":{}}`},
		"unknown-keys":        {`{"more":1,"execs":[{"path":"/bin/id","more":1}]}`, `{"execs":[{"path":"/bin/id"}]}`},
		"sets":                {`{"syscalls":["write","read","write"]}`, `{"syscalls":["read","write"]}`},
		"said-twice":          {`{"execs":[{"path":"/b"},{"path":"/a"},{"path":"/b"}]}`, `{"execs":[{"path":"/b"},{"path":"/a"}]}`},
		"order-of-a-list":     {`{"execs":[{"path":"/b","args":["2","1"]}]}`, `{"execs":[{"path":"/b","args":["2","1"]}]}`},
		"lists-in-a-list":     {`{"opens":[{"path":"/x","flags":[]}]}`, `{"opens":[{"path":"/x","flags":null}]}`},
		"inlined-selector":    {`{"matchLabels":{"app":"x"}}`, `{"matchLabels":{"app":"x"}}`},
		"processes-of-a-rule": {`{"rulePolicies":{"R1":{"processAllowed":["b","a"]}}}`, `{"rulePolicies":{"R1":{"processAllowed":["a","b"]}}}`},
		"neighbour-written-up": {
			`{"egress":[{"identifier":"i","ports":[{"port":53}]}]}`,
			`{"egress":[{"identifier":"i","type":"","dns":"","dnsNames":null,"ports":[{"name":"","protocol":"","port":53}],"podSelector":null,"namespaceSelector":null,"ipAddress":""}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.create(t, object(t, name, "any", c.sent))
			var want, changes, got map[string]any
			must(t, json.Unmarshal([]byte(nothing), &want))
			must(t, json.Unmarshal([]byte(c.changes), &changes))
			for key, value := range changes {
				want[key] = value
			}
			must(t, json.Unmarshal([]byte(spec(t, w.get(t, name))), &got))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was published as signed comes back as it was, but for the checksum.
func TestPublishedFragmentsComeBack(t *testing.T) {
	w := newWorld(t)
	for _, class := range []string{"base", "admission", "overlay"} {
		name := "bundle37-" + class
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(testkit.Corpus(t, "fragments/node-agent/fragments/"+name+"-signed.yaml"), &o.Object))
		sent := o.DeepCopy()
		w.create(t, o)
		got := w.get(t, name)
		annotations := got.GetAnnotations()
		if annotations["kubescape.io/sync-checksum"] == "" {
			t.Errorf("%s: no checksum in %v", name, annotations)
		}
		delete(annotations, "kubescape.io/sync-checksum")
		if diff := cmp.Diff([]any{sent.GetLabels(), sent.GetAnnotations(), spec(t, sent)}, []any{got.GetLabels(), annotations, spec(t, got)}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// In a CRD an apply takes away what its manager no longer says; see e2e/kubescape.
func TestApplyTakesNothingAway(t *testing.T) {
	w := newWorld(t)
	apply := func(labels string) *unstructured.Unstructured {
		force := true
		patch := `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"one","labels":` + labels + `}}`
		o, err := w.profiles().Patch(t.Context(), "one", types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test", Force: &force})
		must(t, err)
		return o
	}
	apply(`{"a":"1","b":"1"}`)
	o := apply(`{"a":"2"}`)
	if diff := cmp.Diff(map[string]string{"a": "2", "b": "1"}, o.GetLabels()); diff != "" || len(o.GetManagedFields()) > 0 {
		t.Errorf("managedFields %v, labels %s", o.GetManagedFields(), diff)
	}
}

func TestDeletingACollectionIgnoresSelectors(t *testing.T) {
	w := newWorld(t)
	w.create(t, object(t, "one", "wanted", `{}`))
	w.create(t, object(t, "two", "other", `{}`))
	must(t, w.profiles().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "is=wanted"}))
	list, err := w.profiles().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) > 0 {
		t.Errorf("left: %q", names(list.Items))
	}
}
