//go:build linux

package kubescape

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// installed is the API server with all kinds.
func installed(t *testing.T) dynamic.Interface {
	t.Helper()
	cp := shared.ControlPlane(t)
	must(t, InstallCRDs(t.Context(), cp, Profiles, Rules))
	client, err := dynamic.NewForConfig(cp.RESTConfig())
	must(t, err)
	return client
}

func resource(group, version, plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

// What was published is stored as it was signed, nulls and all; so are the altered copies, which no
// schema can tell apart.
func TestPublishedObjectsComeBack(t *testing.T) {
	client := installed(t)
	plural := map[string]schema.GroupVersionResource{
		"ContainerProfile": resource(Profiles, "v1beta1", "containerprofiles"), "Rules": resource(Rules, "v1", "rules"),
	}
	dir := testkit.CorpusDir(t, "fragments")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	must(t, err)
	more, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.yaml"))
	must(t, err)
	if files = append(files, more...); len(files) < 18 {
		t.Fatalf("%d files in %s", len(files), dir)
	}
	for _, file := range files {
		name := strings.TrimPrefix(file, dir+"/")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			must(t, err)
			sent := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal(raw, &sent.Object))
			sent.SetNamespace("default")
			sent.SetName(strings.ToLower(strings.NewReplacer("/", "-", ".yaml", "").Replace(name)))
			got, err := client.Resource(plural[sent.GetKind()]).Namespace("default").Create(t.Context(), sent.DeepCopy(), metav1.CreateOptions{})
			must(t, err)
			for what, of := range map[string]func(*unstructured.Unstructured) any{
				"labels":      func(o *unstructured.Unstructured) any { return o.GetLabels() },
				"annotations": func(o *unstructured.Unstructured) any { return o.GetAnnotations() },
				"spec":        func(o *unstructured.Unstructured) any { return o.Object["spec"] },
			} {
				if diff := cmp.Diff(text(t, of(sent)), text(t, of(got))); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
			}
		})
	}
}

func TestWrongTypesAreRefused(t *testing.T) {
	client := installed(t)
	for name, spec := range map[string]string{"a-list-as-text": `{"execs":"/bin/id"}`, "a-list-as-object": `{"syscalls":{}}`, "text-as-number": `{"imageID":1}`} {
		o := &unstructured.Unstructured{}
		must(t, json.Unmarshal([]byte(`{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"`+name+`"},"spec":`+spec+`}`), &o.Object))
		_, err := client.Resource(resource(Profiles, "v1beta1", "containerprofiles")).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Unlike in e2e/storage, where managedFields are dropped.
func TestApplyTakesAwayWhatIsNoLongerSaid(t *testing.T) {
	client := installed(t)
	apply := func(labels string) *unstructured.Unstructured {
		force := true
		patch := `{"apiVersion":"spdx.softwarecomposition.kubescape.io/v1beta1","kind":"ContainerProfile","metadata":{"name":"applied","labels":` + labels + `}}`
		o, err := client.Resource(resource(Profiles, "v1beta1", "containerprofiles")).Namespace("default").
			Patch(t.Context(), "applied", types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "test", Force: &force})
		must(t, err)
		return o
	}
	apply(`{"a":"1","b":"1"}`)
	if diff := cmp.Diff(map[string]string{"a": "2"}, apply(`{"a":"2"}`).GetLabels()); diff != "" {
		t.Error(diff)
	}
}

func TestBindingsAndSeccompProfilesAreServed(t *testing.T) {
	client := installed(t)
	binding := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"ruleID": "R0001"}}}}}
	binding.SetAPIVersion("kubescape.io/v1")
	binding.SetKind("RuntimeRuleAlertBinding")
	binding.SetName("all-pods")
	_, err := client.Resource(resource(Rules, "v1", "runtimerulealertbindings")).Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
	seccomp := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"anything": nil}}}
	seccomp.SetAPIVersion("spdx.softwarecomposition.kubescape.io/v1beta1")
	seccomp.SetKind("SeccompProfile")
	seccomp.SetName("one")
	_, err = client.Resource(resource(Profiles, "v1beta1", "seccompprofiles")).Namespace("default").Create(t.Context(), seccomp, metav1.CreateOptions{})
	must(t, err)
}

func TestGroupsThatAreNotKubescapesAreRefused(t *testing.T) {
	if err := InstallCRDs(t.Context(), shared.ControlPlane(t), "example.com"); err == nil {
		t.Error("installed the CRDs of example.com")
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
