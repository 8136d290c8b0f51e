//go:build linux

package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// objects are what kubectl kustomize makes of a directory of manifests/.
func objects(t *testing.T, i *installation, dir string) (all []unstructured.Unstructured) {
	t.Helper()
	text := i.succeeds(t, nil, "kustomize", filepath.Join(shared.Lab(t).Root(), "manifests", dir)).Stdout
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
}

// rendered lists "kind/name" of them.
func rendered(t *testing.T, i *installation, dir string) (all []string) {
	t.Helper()
	for _, o := range objects(t, i, dir) {
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	slices.Sort(all)
	return all
}

func TestManifestsHoldExactlyWhatIsMeant(t *testing.T) {
	i := install(t)
	var guards []string
	for _, name := range []string{"ledger", "anchor", "trust-policy", "crds", "profile-shape", "canary", "decommission", "serving-secret"} {
		guards = append(guards, "ValidatingAdmissionPolicy/hostwarrant-"+name, "ValidatingAdmissionPolicyBinding/hostwarrant-"+name)
	}
	both := append(guards,
		"ClusterRole/hostwarrant-canary", "ClusterRole/hostwarrant-controller", "ClusterRole/hostwarrant-decommissioner",
		"ClusterRole/hostwarrant-relay", "ClusterRole/hostwarrant-runner", "ClusterRole/hostwarrant-webhook",
		"ClusterRoleBinding/hostwarrant-canary", "ClusterRoleBinding/hostwarrant-controller", "ClusterRoleBinding/hostwarrant-relay", "ClusterRoleBinding/hostwarrant-webhook",
		"CustomResourceDefinition/hostruns.hostwarrant.dev", "CustomResourceDefinition/ledgers.hostwarrant.dev", "CustomResourceDefinition/trustpolicies.hostwarrant.dev",
		"MutatingWebhookConfiguration/hostwarrant", "Namespace/hostwarrant-system",
		"PodDisruptionBudget/hostwarrant-webhook",
		"Role/hostwarrant-canary", "Role/hostwarrant-controller", "Role/hostwarrant-controller", "Role/hostwarrant-relay", "Role/hostwarrant-webhook",
		"RoleBinding/hostwarrant-canary", "RoleBinding/hostwarrant-controller", "RoleBinding/hostwarrant-controller", "RoleBinding/hostwarrant-relay", "RoleBinding/hostwarrant-webhook",
		"Secret/hostwarrant-webhook-ca", "Service/hostwarrant-webhook", "Service/hostwarrant-webhook-policy",
		"ServiceAccount/hostwarrant-canary", "ServiceAccount/hostwarrant-controller", "ServiceAccount/hostwarrant-relay", "ServiceAccount/hostwarrant-webhook",
		"ValidatingWebhookConfiguration/hostwarrant",
	)
	for dir, want := range map[string][]string{
		"base":                      slices.Concat([]string{"Deployment/hostwarrant-controller", "Deployment/hostwarrant-relay", "Deployment/hostwarrant-webhook"}, both),
		"overlays/out-of-cluster":   slices.Concat([]string{"EndpointSlice/hostwarrant-webhook-outside", "EndpointSlice/hostwarrant-webhook-policy-outside"}, both),
		"components/host-namespace": {"Role/hostwarrant-relay-hosts", "RoleBinding/hostwarrant-relay-hosts"},
	} {
		t.Run(dir, func(t *testing.T) {
			slices.Sort(want)
			if got := rendered(t, i, dir); !slices.Equal(got, want) {
				t.Errorf("rendered\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
	t.Run("the Deployments are what the API server and the restricted profile take", func(t *testing.T) {
		text := i.succeeds(t, nil, "kustomize", filepath.Join(shared.Lab(t).Root(), "manifests", "base")).Stdout
		r := i.succeeds(t, []byte(text), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
		if strings.Contains(r.Stderr, "would violate PodSecurity") {
			t.Error(r.Stderr)
		}
	})
}

// What the good-practice list asks of webhook entries: few, fast, narrow, without side effects.
func TestShippedWebhookEntriesAreFewAndNarrow(t *testing.T) {
	i := install(t)
	entries := map[string]int{}
	for _, o := range objects(t, i, "base") {
		if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
			continue
		}
		webhooks, found, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil || !found {
			t.Fatalf("%s: %v", o.GetKind(), err)
		}
		entries[o.GetKind()] += len(webhooks)
		for _, w := range webhooks {
			checkEntry(t, w.(object))
		}
	}
	if entries["ValidatingWebhookConfiguration"] > 2 || entries["MutatingWebhookConfiguration"] > 1 || len(entries) != 2 {
		t.Errorf("entries: %v; at most two validating and one mutating", entries)
	}
}

func checkEntry(t *testing.T, w object) {
	t.Helper()
	if seconds, ok := w["timeoutSeconds"].(int64); !ok || seconds < 1 || seconds > 5 {
		t.Errorf("%v: timeoutSeconds %v", w["name"], w["timeoutSeconds"])
	}
	if w["sideEffects"] != "None" || w["namespaceSelector"] != nil || w["objectSelector"] != nil {
		t.Errorf("%v: sideEffects %v, selectors %v %v", w["name"], w["sideEffects"], w["namespaceSelector"], w["objectSelector"])
	}
	for _, r := range w["rules"].([]any) {
		rule := r.(object)
		for _, group := range rule["apiGroups"].([]any) {
			if group != "hostwarrant.dev" && group != "karpenter.dklesev.github.io" {
				t.Errorf("%v: group %v is not ours to judge", w["name"], group)
			}
		}
		for _, resource := range rule["resources"].([]any) {
			if strings.Contains(resource.(string), "*") {
				t.Errorf("%v: resources %v", w["name"], rule["resources"])
			}
		}
	}
}

// Losing a node or a zone, or draining one, leaves a replica that answers.
func TestShippedWebhookIsSpread(t *testing.T) {
	i := install(t)
	var deployment, budget object
	for _, o := range objects(t, i, "base") {
		switch o.GetKind() + "/" + o.GetName() {
		case "Deployment/hostwarrant-webhook":
			deployment = o.Object
		case "PodDisruptionBudget/hostwarrant-webhook":
			budget = o.Object
		}
	}
	value := func(o object, path ...string) any {
		v, _, err := unstructured.NestedFieldNoCopy(o, path...)
		must(t, err)
		return v
	}
	if replicas := value(deployment, "spec", "replicas").(int64); replicas < 2 {
		t.Errorf("%d replicas", replicas)
	}
	for what, got := range map[string]any{
		"maxUnavailable of a rollout": value(deployment, "spec", "strategy", "rollingUpdate", "maxUnavailable"),
	} {
		if got != int64(0) {
			t.Errorf("%s is %v", what, got)
		}
	}
	if got := value(budget, "spec", "maxUnavailable"); got != int64(1) {
		t.Errorf("maxUnavailable of the budget is %v", got)
	}
	pod := value(deployment, "spec", "template", "spec").(object)
	if pod["priorityClassName"] != "system-cluster-critical" {
		t.Errorf("priority class %v", pod["priorityClassName"])
	}
	var spread []string
	for _, c := range pod["topologySpreadConstraints"].([]any) {
		spread = append(spread, c.(object)["topologyKey"].(string))
	}
	slices.Sort(spread)
	if !slices.Equal(spread, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
		t.Errorf("spread over %q", spread)
	}
	selector := value(deployment, "spec", "selector", "matchLabels").(object)
	if got := value(budget, "spec", "selector", "matchLabels").(object); len(got) != 1 || got["app.kubernetes.io/name"] != selector["app.kubernetes.io/name"] {
		t.Errorf("the budget is for %v", got)
	}
}

// None of our roles names everything, and caBundle can be written in two objects only.
func TestShippedRolesNameWhatTheyNeed(t *testing.T) {
	i := install(t)
	seen := 0
	for _, o := range objects(t, i, "base") {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		seen++
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		must(t, err)
		for _, r := range rules {
			rule := r.(object)
			for _, field := range []string{"verbs", "resources", "apiGroups"} {
				if values, ok := rule[field].([]any); !ok || slices.ContainsFunc(values, func(v any) bool { return strings.Contains(v.(string), "*") }) {
					t.Errorf("%s %s: %s %v", o.GetKind(), o.GetName(), field, rule[field])
				}
			}
			for _, resource := range rule["resources"].([]any) {
				if !strings.HasSuffix(resource.(string), "webhookconfigurations") {
					continue
				}
				if names, ok := rule["resourceNames"].([]any); !ok || len(names) != 1 || names[0] != "hostwarrant" {
					t.Errorf("%s %s: %v for %v", o.GetKind(), o.GetName(), resource, rule["resourceNames"])
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("%d roles seen", seen)
	}
}

// The components are what the API server takes, beside base.
func TestComponentsRender(t *testing.T) {
	i := install(t)
	for component, want := range map[string][]string{
		"network-policy":       {"NetworkPolicy/hostwarrant-default", "NetworkPolicy/hostwarrant-relay"},
		"guard-configurations": {"ValidatingAdmissionPolicy/hostwarrant-webhook-configurations", "ValidatingAdmissionPolicyBinding/hostwarrant-webhook-configurations"},
		"cert-manager":         {"Certificate/hostwarrant-webhook-serving", "Issuer/hostwarrant-webhook", "Role/hostwarrant-controller-serving"},
	} {
		t.Run(component, func(t *testing.T) {
			root := shared.Lab(t).Root()
			dir, err := os.MkdirTemp(filepath.Join(root, "bin"), "kustomize-") // kustomize reads no absolute paths
			must(t, err)
			t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
			testkit.WriteFile(t, dir, "kustomization.yaml", []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../../manifests/base]\ncomponents: [../../manifests/components/"+component+"]\n"))
			rel, err := filepath.Rel(filepath.Join(root, "manifests"), dir)
			must(t, err)
			got := rendered(t, i, rel)
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Errorf("no %s among\n%s", name, strings.Join(got, "\n"))
				}
			}
			if component == "cert-manager" {
				text := i.succeeds(t, nil, "kustomize", dir).Stdout
				for _, says := range []string{"--serving-certificate-dir=/etc/hostwarrant/serving", "--serving-secret=hostwarrant-system/hostwarrant-webhook-serving", "secretName: hostwarrant-webhook-serving"} {
					if !strings.Contains(text, says) {
						t.Errorf("no %s", says)
					}
				}
				if slices.Contains(got, "Secret/hostwarrant-webhook-ca") {
					t.Error("the Secret of the self-managed CA is still there")
				}
				return
			}
			i.succeeds(t, nil, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", dir)
		})
	}
}
