package drift

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/manifests"
)

const namespace = "hostwarrant-system"

// shipped are the product's own.
func shipped(t *testing.T, namespace string) []Object {
	t.Helper()
	texts, err := manifests.Guards()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Parse(texts, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// served is what an API server returns of what is shipped: with metadata, defaults and a caBundle.
func served(t *testing.T) map[string]Object {
	t.Helper()
	all := map[string]Object{}
	for _, live := range shipped(t, namespace) {
		metadata := live.metadata()
		metadata["uid"], metadata["generation"] = "u", int64(1)
		metadata["labels"] = map[string]any{"app.kubernetes.io/part-of": "hostwarrant"}
		metadata["annotations"] = map[string]any{"cert-manager.io/inject-ca-from": "a/b"}
		for _, hook := range list(live, "webhooks") {
			at(hook, "clientConfig")["caBundle"] = "QQ=="
			hook["namespaceSelector"], hook["objectSelector"] = map[string]any{}, map[string]any{}
			if live.Kind() == "MutatingWebhookConfiguration" && hook["reinvocationPolicy"] == nil {
				hook["reinvocationPolicy"] = "Never"
			}
		}
		if live.Kind() == "ValidatingAdmissionPolicy" {
			constraints := at(live, "spec", "matchConstraints")
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
		}
		all[live.String()] = live
	}
	return all
}

// at is the map at a path, nil where there is none.
func at(m map[string]any, path ...string) map[string]any {
	for _, field := range path {
		m = as[map[string]any](m[field])
	}
	return m
}

func list(m map[string]any, field string) []map[string]any {
	var out []map[string]any
	for _, e := range as[[]any](m[field]) {
		out = append(out, as[map[string]any](e))
	}
	return out
}

func TestCheckNamesWhatDiffers(t *testing.T) {
	const validating, mutating = "ValidatingWebhookConfiguration/hostwarrant", "MutatingWebhookConfiguration/hostwarrant"
	const binding = "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
	hook := func(key string, edit func(map[string]any)) func(map[string]Object) {
		return func(live map[string]Object) { edit(list(live[key], "webhooks")[0]) }
	}
	for name, c := range map[string]struct {
		edit func(map[string]Object)
		want []string
	}{
		"as the API server serves it": {func(map[string]Object) {}, nil},
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
		"a second entry": {func(live map[string]Object) {
			hooks := list(live[mutating], "webhooks")
			live[mutating]["webhooks"] = []any{hooks[0], hooks[0]}
		}, []string{mutating + ": webhooks has 2 entries, not 1"}},
		"no configuration": {func(live map[string]Object) { delete(live, validating) }, []string{validating + ": is missing"}},
		"no binding":       {func(live map[string]Object) { delete(live, binding) }, []string{binding + ": is missing"}},
		"a binding that audits": {func(live map[string]Object) {
			at(live[binding], "spec")["validationActions"] = []any{"Audit"}
		}, []string{binding + ": spec.validationActions has 1 entries, not 2"}},
		"a binding for some": {func(live map[string]Object) {
			at(live[binding], "spec")["matchResources"] = map[string]any{"namespaceSelector": map[string]any{}}
		}, []string{binding + ": spec.matchResources differs from what is shipped"}},
		"a policy that fails open": {func(live map[string]Object) {
			at(live["ValidatingAdmissionPolicy/hostwarrant-ledger"], "spec")["failurePolicy"] = "Ignore"
		}, []string{"ValidatingAdmissionPolicy/hostwarrant-ledger: spec.failurePolicy differs from what is shipped"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := served(t)
			c.edit(live)
			if diff := cmp.Diff(c.want, differences(t, &Looks{}, live)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// differences are those of one look at everything.
func differences(t *testing.T, l *Looks, live map[string]Object) []string {
	t.Helper()
	var all []string
	for _, o := range shipped(t, namespace) {
		for _, d := range l.At(o, live[o.String()]) {
			all = append(all, d.String())
		}
	}
	slices.Sort(all)
	return all
}

func TestShippedIsWhatGuards(t *testing.T) {
	kinds := map[string]int{}
	for _, o := range shipped(t, "elsewhere") {
		kinds[o.Kind()]++
		for _, hook := range list(o, "webhooks") {
			if got := at(hook, "clientConfig", "service")["namespace"]; got != "elsewhere" {
				t.Errorf("%s: the service is in %q", o, got)
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

// What cannot be compared must not pass for compared.
func TestWhatIsNotShippedLikeThat(t *testing.T) {
	const head = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"
	for name, c := range map[string]struct{ text, want string }{
		"a good one":               {head + "metadata: {name: a}\nwebhooks: [{clientConfig: {service: {name: b}}}]\n", ""},
		"no YAML":                  {"{", "reading what is shipped: yaml: "},
		"another group":            {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "reading what is shipped: ConfigMap/a is not a named object of group admissionregistration.k8s.io"},
		"a group with a like name": {"apiVersion: admissionregistration.k8s.io.example/v1\nkind: A\nmetadata: {name: a}\n", "reading what is shipped: A/a is not a named object of group admissionregistration.k8s.io"},
		"no name":                  {head, "reading what is shipped: ValidatingWebhookConfiguration/ is not a named object of group admissionregistration.k8s.io"},
		"an empty document":        {head + "metadata: {name: a}\n---\n", "reading what is shipped: / is not a named object of group admissionregistration.k8s.io"},
		"a webhook at a URL":       {head + "metadata: {name: a}\nwebhooks: [{clientConfig: {url: b}}]\n", "reading what is shipped: ValidatingWebhookConfiguration/a holds a webhook without a service"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]string{c.text}, namespace)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
		})
	}
}
