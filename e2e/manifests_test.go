//go:build linux

package e2e

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rendered lists "kind/name" of what kubectl kustomize makes of a directory of manifests/.
func rendered(t *testing.T, i *installation, dir string) []string {
	t.Helper()
	text := i.succeeds(t, nil, "kustomize", filepath.Join(shared.Lab(t).Root(), "manifests", dir)).Stdout
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var all []string
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	slices.Sort(all)
	return all
}

func TestManifestsHoldExactlyWhatIsMeant(t *testing.T) {
	i := install(t)
	both := []string{
		"ClusterRole/hostwarrant-controller", "ClusterRole/hostwarrant-relay", "ClusterRole/hostwarrant-runner", "ClusterRole/hostwarrant-webhook",
		"ClusterRoleBinding/hostwarrant-controller", "ClusterRoleBinding/hostwarrant-relay", "ClusterRoleBinding/hostwarrant-webhook",
		"CustomResourceDefinition/hostruns.hostwarrant.dev", "CustomResourceDefinition/trustpolicies.hostwarrant.dev",
		"MutatingWebhookConfiguration/hostwarrant", "Namespace/hostwarrant-system",
		"Role/hostwarrant-controller", "Role/hostwarrant-relay", "Role/hostwarrant-webhook",
		"RoleBinding/hostwarrant-controller", "RoleBinding/hostwarrant-relay", "RoleBinding/hostwarrant-webhook",
		"Secret/hostwarrant-webhook-ca", "Service/hostwarrant-webhook", "Service/hostwarrant-webhook-policy",
		"ServiceAccount/hostwarrant-controller", "ServiceAccount/hostwarrant-relay", "ServiceAccount/hostwarrant-webhook",
		"ValidatingWebhookConfiguration/hostwarrant",
	}
	for dir, want := range map[string][]string{
		"base":                      append([]string{"Deployment/hostwarrant-controller", "Deployment/hostwarrant-relay", "Deployment/hostwarrant-webhook"}, both...),
		"overlays/out-of-cluster":   append([]string{"EndpointSlice/hostwarrant-webhook-outside", "EndpointSlice/hostwarrant-webhook-policy-outside"}, both...),
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
