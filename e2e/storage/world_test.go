//go:build linux

package storage

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// waitLimit bounds what a test waits for something that should take a second.
const waitLimit = 60 * time.Second

// world is a server and a namespace of the test's own.
type world struct {
	*Server
	cp        *lab.ControlPlane
	client    dynamic.Interface
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp := shared.ControlPlane(t)
	w := &world{cp: cp, Server: Start(t, shared.Lab(t), cp), namespace: "t" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	var err error
	w.client, err = dynamic.NewForConfig(cp.RESTConfig())
	must(t, err)
	w.succeeds(t, "", "create", "namespace", w.namespace)
	return w
}

func resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "spdx.softwarecomposition.kubescape.io", Version: "v1beta1", Resource: "containerprofiles"}
}

func (w *world) profiles() dynamic.ResourceInterface {
	return w.client.Resource(resource()).Namespace(w.namespace)
}

// object is a profile with a label and a spec in JSON.
func object(t *testing.T, name, label, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(resource().GroupVersion().String())
	o.SetKind("ContainerProfile")
	o.SetName(name)
	o.SetLabels(map[string]string{"is": label})
	var content map[string]any
	must(t, json.Unmarshal([]byte(spec), &content))
	o.Object["spec"] = content
	return o
}

func (w *world) create(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := w.profiles().Create(t.Context(), o, metav1.CreateOptions{})
	must(t, err)
	return created
}

func (w *world) get(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := w.profiles().Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return o
}

// spec is an object's spec as JSON with sorted keys.
func spec(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(o.Object["spec"])
	must(t, err)
	return string(text)
}

func (w *world) succeeds(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r, err := w.cp.Kubectl(t.Context(), strings.NewReader(stdin), args...)
	must(t, err)
	if r.Code != 0 {
		t.Fatalf("kubectl %s: exit %d: %s", strings.Join(args, " "), r.Code, r.Stderr)
	}
	return r.Stdout
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for %s", waitLimit, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
