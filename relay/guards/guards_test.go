package guards

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/manifests"
)

const (
	validating = "ValidatingWebhookConfiguration/hostwarrant"
	binding    = "ValidatingAdmissionPolicyBinding/hostwarrant-ledger"
)

// world is a cluster with what is shipped in it.
type world struct {
	*Watcher
	client     client.Client
	registry   *prometheus.Registry
	logged     []string
	unreadable string // the name of what cannot be read
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{registry: prometheus.NewRegistry()}
	texts, err := manifests.Guards()
	must(t, err)
	shipped, err := drift.Parse(texts, "hostwarrant-system")
	must(t, err)
	b := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == w.unreadable {
				return errors.New("forbidden")
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	for _, o := range shipped {
		b = b.WithObjects((&unstructured.Unstructured{Object: o}).DeepCopy())
	}
	w.client = b.Build()
	metrics, err := NewMetrics(w.registry)
	must(t, err)
	logger := funcr.New(func(_, line string) { w.logged = append(w.logged, line) }, funcr.Options{})
	w.Watcher = &Watcher{Reader: w.client, Shipped: shipped, Metrics: metrics, Log: logger}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored reads an object that is shipped.
func (w *world) stored(t *testing.T, of string) *unstructured.Unstructured {
	t.Helper()
	kind, name, _ := strings.Cut(of, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: drift.Group, Version: "v1", Kind: kind})
	must(t, w.client.Get(t.Context(), client.ObjectKey{Name: name}, u))
	return u
}

// drifting are the objects whose metric is 1.
func (w *world) drifting(t *testing.T) (all []string, series int) {
	t.Helper()
	families, err := w.registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			series++
			if m.GetGauge().GetValue() == 1 {
				all = append(all, m.GetLabel()[0].GetValue())
			}
		}
	}
	return all, series
}

func TestWhatGuardsIsLookedAt(t *testing.T) {
	hook := func(t *testing.T, w *world, value any, path ...string) {
		t.Helper()
		u := w.stored(t, validating)
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		must(t, err)
		h, ok := hooks[0].(map[string]any)
		if !ok {
			t.Fatalf("a webhook is a %T", hooks[0])
		}
		must(t, unstructured.SetNestedField(h, value, path...))
		must(t, unstructured.SetNestedSlice(u.Object, hooks, "webhooks"))
		u.SetLabels(map[string]string{"a": "b"})
		must(t, w.client.Update(t.Context(), u))
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *world)
		want   []string // the objects
		says   string
	}{
		"as it was shipped": {func(*testing.T, *world) {}, nil, "is as shipped"},
		"labels and a CA":   {func(t *testing.T, w *world) { hook(t, w, "QQ==", "clientConfig", "caBundle") }, nil, "is as shipped"},
		"a webhook that fails open": {
			func(t *testing.T, w *world) { hook(t, w, "Ignore", "failurePolicy") },
			[]string{validating},
			"webhooks[0].failurePolicy differs from what is shipped",
		},
		"a namespace that is left out": {
			func(t *testing.T, w *world) {
				hook(t, w, map[string]any{"matchLabels": map[string]any{"a": "b"}}, "namespaceSelector")
			},
			[]string{validating},
			"webhooks[0].namespaceSelector differs from what is shipped",
		},
		"no configuration": {
			func(t *testing.T, w *world) { must(t, w.client.Delete(t.Context(), w.stored(t, validating))) },
			[]string{validating},
			validating + ": is missing",
		},
		"a binding that only warns": {func(t *testing.T, w *world) {
			u := w.stored(t, binding)
			must(t, unstructured.SetNestedSlice(u.Object, []any{"Warn", "Audit"}, "spec", "validationActions"))
			must(t, w.client.Update(t.Context(), u))
		}, []string{binding}, binding + ": spec.validationActions[0] differs from what is shipped"},
		"no right to look": {
			func(_ *testing.T, w *world) { w.unreadable = "hostwarrant-ledger" },
			[]string{"ValidatingAdmissionPolicy/hostwarrant-ledger", binding},
			binding + ": cannot be read: forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(t, w)
			if got := w.Look(t.Context()); got != (c.want == nil) {
				t.Errorf("all as shipped: %v", got)
			}
			got, series := w.drifting(t)
			if diff := cmp.Diff(c.want, got); diff != "" || series != len(w.Shipped) {
				t.Errorf("%d series; %s", series, diff)
			}
			if len(w.logged) != 1 || !strings.Contains(w.logged[0], c.says) || strings.Contains(w.logged[0], "ALARM") != (c.want != nil) {
				t.Errorf("logged %q", w.logged)
			}
		})
	}
}

// An alarm stands in the log once, and so does its end.
func TestAnAlarmEndsWhenTheGuardIsBack(t *testing.T) {
	w := newWorld(t)
	gone := w.stored(t, binding)
	look := func(want bool, lines int) {
		t.Helper()
		if got := w.Look(t.Context()); got != want || len(w.logged) != lines {
			t.Fatalf("as shipped: %v; logged %q", got, w.logged)
		}
	}
	look(true, 1)
	must(t, w.client.Delete(t.Context(), gone))
	look(false, 2)
	look(false, 2)
	gone.SetResourceVersion("")
	must(t, w.client.Create(t.Context(), gone))
	look(true, 3)
	if all, _ := w.drifting(t); all != nil {
		t.Errorf("still 1: %v", all)
	}
	// Changed and changed back between two looks.
	gone = w.stored(t, binding)
	gone.SetGeneration(gone.GetGeneration() + 1)
	must(t, w.client.Update(t.Context(), gone))
	look(false, 4)
	look(true, 5)
}

// A relay that ends tells no alarm: what it reads then fails.
func TestWhoLeavesAlarmsNobody(t *testing.T) {
	w := newWorld(t)
	w.Log = logr.Discard()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !w.Look(ctx) {
		t.Error("an alarm")
	}
	if _, series := w.drifting(t); series != 0 {
		t.Errorf("%d series", series)
	}
	must(t, w.Start(ctx))
}
