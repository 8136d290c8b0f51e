//go:build linux

package e2e

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	for _, name := range []string{"ledger", "anchor", "trust-policy", "crds", "profile-shape", "canary", "decommission", "serving-secret", "controller-hosts", "composites", "hostrun-status", "minter-secrets", "minter-approvals", "leases", "host-reports"} {
		guards = append(guards, "ValidatingAdmissionPolicy/hostwarrant-"+name, "ValidatingAdmissionPolicyBinding/hostwarrant-"+name)
	}
	both := slices.Concat(guards, []string{
		"ClusterRole/hostwarrant-canary", "ClusterRole/hostwarrant-controller", "ClusterRole/hostwarrant-decommissioner",
		"ClusterRole/hostwarrant-minter", "ClusterRole/hostwarrant-relay", "ClusterRole/hostwarrant-runner", "ClusterRole/hostwarrant-webhook",
		"ClusterRoleBinding/hostwarrant-canary", "ClusterRoleBinding/hostwarrant-controller", "ClusterRoleBinding/hostwarrant-minter", "ClusterRoleBinding/hostwarrant-relay", "ClusterRoleBinding/hostwarrant-webhook",
		"CustomResourceDefinition/hostruns.hostwarrant.dev", "CustomResourceDefinition/hoststatements.hostwarrant.dev", "CustomResourceDefinition/hoststates.hostwarrant.dev", "CustomResourceDefinition/ledgers.hostwarrant.dev", "CustomResourceDefinition/profilebundles.hostwarrant.dev", "CustomResourceDefinition/trustpolicies.hostwarrant.dev",
		"FlowSchema/hostwarrant-leader-election", "MutatingWebhookConfiguration/hostwarrant", "Namespace/hostwarrant-system",
		"PodDisruptionBudget/hostwarrant-webhook",
		"Role/hostwarrant-canary", "Role/hostwarrant-controller", "Role/hostwarrant-controller", "Role/hostwarrant-minter", "Role/hostwarrant-minter-tokens", "Role/hostwarrant-relay", "Role/hostwarrant-relay-cluster-info", "Role/hostwarrant-webhook",
		"RoleBinding/hostwarrant-canary", "RoleBinding/hostwarrant-controller", "RoleBinding/hostwarrant-controller", "RoleBinding/hostwarrant-minter", "RoleBinding/hostwarrant-minter-tokens", "RoleBinding/hostwarrant-relay", "RoleBinding/hostwarrant-relay-cluster-info", "RoleBinding/hostwarrant-webhook",
		"Secret/hostwarrant-webhook-ca", "Service/hostwarrant-webhook", "Service/hostwarrant-webhook-policy",
		"ServiceAccount/hostwarrant-canary", "ServiceAccount/hostwarrant-controller", "ServiceAccount/hostwarrant-minter", "ServiceAccount/hostwarrant-relay", "ServiceAccount/hostwarrant-webhook",
		"ValidatingWebhookConfiguration/hostwarrant",
	})
	for dir, want := range map[string][]string{
		"base":                      slices.Concat([]string{"Deployment/hostwarrant-controller", "Deployment/hostwarrant-minter", "Deployment/hostwarrant-relay", "Deployment/hostwarrant-webhook"}, both),
		"overlays/out-of-cluster":   slices.Concat([]string{"EndpointSlice/hostwarrant-webhook-outside", "EndpointSlice/hostwarrant-webhook-policy-outside"}, both),
		"components/host-namespace": {"Role/hostwarrant-minter-hosts", "Role/hostwarrant-relay-hosts", "RoleBinding/hostwarrant-minter-hosts", "RoleBinding/hostwarrant-relay-hosts"},
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

// typed converts an object of the manifests, strictly.
func typed(t *testing.T, o unstructured.Unstructured, into any) {
	t.Helper()
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true))
}

// What the good-practice list asks of webhook entries: few, fast, narrow, without side effects.
func TestShippedWebhookEntriesAreFewAndNarrow(t *testing.T) {
	i := install(t)
	validating, mutating := 0, 0
	for _, o := range objects(t, i, "base") {
		switch o.GetKind() {
		case "ValidatingWebhookConfiguration":
			var c admissionregistrationv1.ValidatingWebhookConfiguration
			typed(t, o, &c)
			for _, w := range c.Webhooks {
				validating++
				checkEntry(t, w.Name, w.TimeoutSeconds, w.SideEffects, w.NamespaceSelector != nil || w.ObjectSelector != nil, w.Rules)
			}
		case "MutatingWebhookConfiguration":
			var c admissionregistrationv1.MutatingWebhookConfiguration
			typed(t, o, &c)
			for _, w := range c.Webhooks {
				mutating++
				checkEntry(t, w.Name, w.TimeoutSeconds, w.SideEffects, w.NamespaceSelector != nil || w.ObjectSelector != nil, w.Rules)
			}
		}
	}
	if validating == 0 || validating > 3 || mutating != 1 {
		t.Errorf("%d validating and %d mutating entries; want at most three, and one", validating, mutating)
	}
}

func checkEntry(t *testing.T, name string, seconds *int32, effects *admissionregistrationv1.SideEffectClass, selectors bool, rules []admissionregistrationv1.RuleWithOperations) {
	t.Helper()
	if seconds == nil || *seconds < 1 || *seconds > 5 {
		t.Errorf("%s: timeoutSeconds %v", name, seconds)
	}
	if effects == nil || *effects != admissionregistrationv1.SideEffectClassNone || selectors {
		t.Errorf("%s: sideEffects %v, selectors %v", name, effects, selectors)
	}
	if len(rules) == 0 {
		t.Errorf("%s: no rules", name)
	}
	for _, r := range rules {
		for _, group := range r.APIGroups {
			if !slices.Contains([]string{"hostwarrant.dev", "karpenter.dklesev.github.io", "spdx.softwarecomposition.kubescape.io", "kubescape.io"}, group) {
				t.Errorf("%s: group %s is not ours to judge", name, group)
			}
		}
		if strings.Contains(strings.Join(r.Resources, " "), "*") {
			t.Errorf("%s: resources %q", name, r.Resources)
		}
	}
}

// Losing a node or a zone, or draining one, leaves a replica that answers.
func TestShippedWebhookIsSpread(t *testing.T) {
	i := install(t)
	var deployment appsv1.Deployment
	var budget policyv1.PodDisruptionBudget
	for _, o := range objects(t, i, "base") {
		switch o.GetKind() + "/" + o.GetName() {
		case "Deployment/hostwarrant-webhook":
			typed(t, o, &deployment)
		case "PodDisruptionBudget/hostwarrant-webhook":
			typed(t, o, &budget)
		}
	}
	s := deployment.Spec
	if s.Replicas == nil || *s.Replicas < 2 || s.Strategy.RollingUpdate == nil || s.Strategy.RollingUpdate.MaxUnavailable.String() != "0" {
		t.Errorf("%v replicas, strategy %+v", s.Replicas, s.Strategy)
	}
	if budget.Spec.MaxUnavailable.String() != "1" || !maps.Equal(budget.Spec.Selector.MatchLabels, s.Selector.MatchLabels) {
		t.Errorf("budget %+v", budget.Spec)
	}
	pod := s.Template.Spec
	if pod.PriorityClassName != "system-cluster-critical" {
		t.Errorf("priority class %q", pod.PriorityClassName)
	}
	var spread []string
	for _, c := range pod.TopologySpreadConstraints {
		if !maps.Equal(c.LabelSelector.MatchLabels, s.Selector.MatchLabels) {
			t.Errorf("spread of %v", c.LabelSelector)
		}
		spread = append(spread, c.TopologyKey)
	}
	slices.Sort(spread)
	if !slices.Equal(spread, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
		t.Errorf("spread over %q", spread)
	}
	for _, c := range pod.Containers {
		if c.ReadinessProbe == nil || c.LivenessProbe == nil || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: probes %v %v, limits %v", c.Name, c.ReadinessProbe, c.LivenessProbe, c.Resources.Limits)
		}
	}
}

// None of our roles names everything, and caBundle can be written in two objects only.
func TestShippedRolesNameWhatTheyNeed(t *testing.T) {
	i := install(t)
	seen := 0
	for _, o := range objects(t, i, "base") {
		var role struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
		}
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		seen++
		typed(t, o, &role)
		for _, r := range role.Rules {
			if strings.Contains(strings.Join(slices.Concat(r.Verbs, r.Resources, r.APIGroups), " "), "*") {
				t.Errorf("%s %s: %+v", role.Kind, role.Name, r)
			}
			ofWebhooks := slices.ContainsFunc(r.Resources, func(resource string) bool { return strings.HasSuffix(resource, "webhookconfigurations") })
			if ofWebhooks && !slices.Equal(r.ResourceNames, []string{"hostwarrant"}) {
				t.Errorf("%s %s: %q for %q", role.Kind, role.Name, r.Resources, r.ResourceNames)
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
