package refresh

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const managed = `[{"manager":"%M","operation":"Update","apiVersion":"karpenter.dklesev.github.io/v1beta1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{%F}}}]`

// TestOnlyOurOwnListsAreRefreshed over controller-runtime's fake client.
func TestOnlyOurOwnListsAreRefreshed(t *testing.T) {
	first, second, root := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(first, second), root), ClusterID: "any", Now: testkit.Now()}
	earlier := []string{first.Line}
	for name, c := range map[string]struct {
		lines           []string
		manager, fields string
		mode            string
		deleting        bool
		wrote, told     bool
	}{
		"filled by the webhook":          {earlier, "kubectl-create", `"f:address":{}`, "Verified", false, true, false},
		"refreshed by us before":         {earlier, FieldManager, `"f:trustedSigners":{}`, "Verified", false, true, false},
		"written by somebody":            {earlier, "argocd-controller", `"f:trustedSigners":{}`, "Verified", false, false, true},
		"by somebody with a like name":   {earlier, "hostwarrant-x", `"f:trustedSigners":{}`, "Verified", false, false, true},
		"a list that no policy rendered": {[]string{second.Line}, "kubectl-create", `"f:address":{}`, "Verified", false, false, false},
		"the present list":               {[]string{first.Line, second.Line}, "kubectl-create", `"f:address":{}`, "Verified", false, false, false},
		"a Raw host":                     {earlier, "kubectl-create", `"f:address":{}`, "Raw", false, false, false},
		"under deletion":                 {earlier, "kubectl-create", `"f:address":{}`, "Verified", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost",
				"metadata": map[string]any{"name": "h", "namespace": "pool", "uid": "u"},
				"spec":     map[string]any{"address": "192.0.2.1", "execMode": c.mode, "trustedSigners": anys(c.lines)},
			}}
			api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				t.Fatal(err)
			}
			var entries []any
			if err := json.Unmarshal([]byte(strings.NewReplacer("%M", c.manager, "%F", c.fields).Replace(managed)), &entries); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedSlice(u.Object, entries, "metadata", "managedFields"); err != nil {
				t.Fatal(err)
			}
			raw, err := u.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			host, err := object.ParseHost(raw)
			if err != nil {
				t.Fatal(err)
			}
			host.Deleting = c.deleting
			told := 0
			counts, err := NewCounts(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			r := &Refresher{
				Client: api, Counts: counts, Rendered: func(lines []string) bool { return slices.Equal(lines, earlier) || len(lines) == 2 },
				Warning: func(_ context.Context, about corev1.ObjectReference, reason, message string) bool {
					if about.Name != "h" || reason != "TrustedSignersOutdated" || !strings.Contains(message, c.manager) {
						t.Errorf("%s/%s: %s %s", about.Kind, about.Name, reason, message)
					}
					told++
					return true
				},
			}
			for range 2 { // what is told is told once
				wrote, err := r.Refresh(t.Context(), s, raw, host)
				if c.wrote {
					if err != nil || !wrote {
						t.Fatalf("%v, %v", wrote, err)
					}
					break
				}
				if err != nil || wrote {
					t.Fatalf("%v, %v", wrote, err)
				}
			}
			if (told == 1) != c.told || told > 1 {
				t.Errorf("told %d times", told)
			}
			live := u.DeepCopy()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(u), live); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedStringSlice(live.Object, "spec", "trustedSigners")
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{first.Line, second.Line}; c.wrote && !slices.Equal(got, want) || !c.wrote && !slices.Equal(got, c.lines) {
				t.Errorf("the list is %q", got)
			}
		})
	}
}

func anys(lines []string) []any {
	var out []any
	for _, line := range lines {
		out = append(out, line)
	}
	return out
}

func TestAWriteThatWasOvertakenIsNotMade(t *testing.T) {
	first, second, root := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	s := verify.Snapshot{Policy: testkit.Policy(t, testkit.PolicyDocument(first, second), root), ClusterID: "any", Now: testkit.Now()}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost", "metadata": map[string]any{"name": "h", "namespace": "pool"},
		"spec": map[string]any{"address": "192.0.2.1", "execMode": "Verified", "trustedSigners": anys([]string{first.Line})},
	}}
	api := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(u).Build()
	stale := u.DeepCopy()
	stale.SetResourceVersion("1")
	raw, err := stale.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	host, err := object.ParseHost(raw)
	if err != nil {
		t.Fatal(err)
	}
	r := &Refresher{Client: api, Rendered: func([]string) bool { return true }}
	if _, err := r.Refresh(t.Context(), s, raw, host); err == nil {
		t.Error("a list that somebody changed meanwhile was written over")
	}
}
