package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const namespace = "hostwarrant-system"

// served is what an API server returns of what is shipped: with metadata, defaults and a caBundle.
func served(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	shipped, err := Shipped(namespace)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, u := range shipped {
		live := u.DeepCopy()
		live.SetUID("u")
		live.SetLabels(map[string]string{"app.kubernetes.io/part-of": "hostwarrant"})
		live.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": "a/b"})
		for _, hook := range list(live.Object, "webhooks") {
			set(&unstructured.Unstructured{Object: hook}, "QQ==", "clientConfig", "caBundle")
			hook["namespaceSelector"], hook["objectSelector"] = map[string]any{}, map[string]any{}
			if live.GetKind() == "MutatingWebhookConfiguration" && hook["reinvocationPolicy"] == nil {
				hook["reinvocationPolicy"] = "Never"
			}
		}
		constraints, ok, err := unstructured.NestedMap(live.Object, "spec", "matchConstraints")
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			for _, selector := range []string{"namespaceSelector", "objectSelector"} {
				if constraints[selector] == nil {
					constraints[selector] = map[string]any{}
				}
			}
			for _, rule := range list(constraints, "resourceRules") {
				if rule["scope"] == nil {
					rule["scope"] = "*"
				}
			}
			if err := unstructured.SetNestedMap(live.Object, constraints, "spec", "matchConstraints"); err != nil {
				t.Fatal(err)
			}
		}
		all[live.GetKind()+"/"+live.GetName()] = live
	}
	return all
}

func list(m map[string]any, field string) []map[string]any {
	var out []map[string]any
	entries, ok := m[field].([]any)
	if !ok {
		return nil
	}
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			out = append(out, entry)
		}
	}
	return out
}

func TestCheckNamesWhatDiffers(t *testing.T) {
	const validating, mutating = "ValidatingWebhookConfiguration/hostwarrant", "MutatingWebhookConfiguration/hostwarrant"
	const binding = "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	hook := func(key string, edit func(map[string]any)) func(map[string]*unstructured.Unstructured) {
		return func(live map[string]*unstructured.Unstructured) { edit(list(live[key].Object, "webhooks")[0]) }
	}
	for name, c := range map[string]struct {
		edit func(map[string]*unstructured.Unstructured)
		want []string
	}{
		"as the API server serves it": {func(map[string]*unstructured.Unstructured) {}, nil},
		"failurePolicy":               {hook(validating, func(h map[string]any) { h["failurePolicy"] = "Ignore" }), []string{validating + ": webhooks[0].failurePolicy differs from what is shipped"}},
		"a selector": {hook(validating, func(h map[string]any) {
			h["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"a": "b"}}
		}), []string{validating + ": webhooks[0].namespaceSelector differs from what is shipped"}},
		"a timeout":                     {hook(validating, func(h map[string]any) { h["timeoutSeconds"] = int64(1) }), []string{validating + ": webhooks[0].timeoutSeconds differs from what is shipped"}},
		"a rule less":                   {hook(validating, func(h map[string]any) { h["rules"] = []any{} }), []string{validating + ": webhooks[0].rules has 0 entries, not 4"}},
		"an operation less":             {hook(mutating, func(h map[string]any) { list(h, "rules")[0]["operations"] = []any{"CREATE"} }), []string{mutating + ": webhooks[0].rules[0].operations has 1 entries, not 2"}},
		"a resource of the rule":        {hook(validating, func(h map[string]any) { list(h, "rules")[0]["apiVersions"] = []any{"v0"} }), []string{validating + ": webhooks[0].rules[0].apiVersions[0] differs from what is shipped"}},
		"a condition that is never met": {hook(validating, func(h map[string]any) { list(h, "matchConditions")[0]["expression"] = "false" }), []string{validating + ": webhooks[0].matchConditions[0].expression differs from what is shipped"}},
		"a URL instead of the service": {hook(validating, func(h map[string]any) { h["clientConfig"] = map[string]any{"url": "https://evil.example"} }), []string{
			validating + ": webhooks[0].clientConfig.service differs from what is shipped", validating + ": webhooks[0].clientConfig.url differs from what is shipped",
		}},
		"another service": {hook(validating, func(h map[string]any) {
			h["clientConfig"] = map[string]any{"service": map[string]any{"namespace": "evil", "name": "hostwarrant-webhook", "path": "/validate", "port": int64(443)}}
		}), []string{validating + ": webhooks[0].clientConfig.service.namespace differs from what is shipped"}},
		"a second entry": {func(live map[string]*unstructured.Unstructured) {
			o := live[mutating].Object
			hooks := list(o, "webhooks")
			o["webhooks"] = []any{hooks[0], hooks[0]}
		}, []string{mutating + ": webhooks has 2 entries, not 1"}},
		"no configuration": {func(live map[string]*unstructured.Unstructured) { delete(live, validating) }, []string{validating + ": is missing"}},
		"no binding":       {func(live map[string]*unstructured.Unstructured) { delete(live, binding) }, []string{binding + ": is missing"}},
		"a binding that audits": {func(live map[string]*unstructured.Unstructured) {
			set(live[binding], []any{"Audit"}, "spec", "validationActions")
		}, []string{binding + ": spec.validationActions has 1 entries, not 2"}},
		"a binding for some": {func(live map[string]*unstructured.Unstructured) {
			set(live[binding], map[string]any{"namespaceSelector": map[string]any{}}, "spec", "matchResources")
		}, []string{binding + ": spec.matchResources differs from what is shipped"}},
		"a policy that fails open": {func(live map[string]*unstructured.Unstructured) {
			set(live["ValidatingAdmissionPolicy/hostwarrant-ledger"], "Ignore", "spec", "failurePolicy")
		}, []string{"ValidatingAdmissionPolicy/hostwarrant-ledger: spec.failurePolicy differs from what is shipped"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := served(t)
			c.edit(live)
			var objects []client.Object
			for _, o := range live {
				objects = append(objects, o)
			}
			shipped, err := Shipped(namespace)
			if err != nil {
				t.Fatal(err)
			}
			found, err := (&Checker{Reader: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objects...).Build(), Shipped: shipped}).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

func TestShippedIsWhatGuards(t *testing.T) {
	shipped, err := Shipped("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, u := range shipped {
		kinds[u.GetKind()]++
		for _, hook := range list(u.Object, "webhooks") {
			if got, _, err := unstructured.NestedString(hook, "clientConfig", "service", "namespace"); err != nil || got != "elsewhere" {
				t.Errorf("%s: the service is in %q, %v", u.GetName(), got, err)
			}
		}
	}
	want := map[string]int{
		"ValidatingWebhookConfiguration": 1, "MutatingWebhookConfiguration": 1,
		"ValidatingAdmissionPolicy": kinds["ValidatingAdmissionPolicyBinding"], "ValidatingAdmissionPolicyBinding": kinds["ValidatingAdmissionPolicy"],
	}
	if diff := cmp.Diff(want, kinds); diff != "" || kinds["ValidatingAdmissionPolicy"] < 8 {
		t.Error(diff, kinds)
	}
}
