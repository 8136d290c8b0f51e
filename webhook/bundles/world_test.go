package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
	keeper "github.com/hostwarrant/hostwarrant/webhook/ledger"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
)

// world is a Controller over controller-runtime's fake client: no API server, no informers. What a
// watch would tell is told by the test.
type world struct {
	t *testing.T
	*Controller
	api              client.WithWatch
	root             testkit.Signer
	vendor, operator testkit.FragmentSigner
	policy           *trustpolicy.Policy
	trustError       error
	now              time.Time
	asking           sync.Mutex // some objects are asked for at once
	gets             []string
	failing          map[string]bool
	events           []string
	conditions       map[string]metav1.Condition
	registry         *prometheus.Registry
	calls            map[string]int // of the Controller and the test, by verb and kind
}

const (
	shop  = "shop"
	redis = "redis"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: testkit.NewSigner(t, "ed25519"), vendor: testkit.NewFragmentSigner(t), operator: testkit.NewFragmentSigner(t), now: testkit.Now(), failing: map[string]bool{}, conditions: map[string]metav1.Condition{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		w.must(add(scheme))
	}
	for _, kind := range []string{fragment.KindContainerProfile, fragment.KindRules, fragment.KindRuleBinding} {
		gvk := schema.FromAPIVersionAndKind(fragment.APIVersionOf(kind), kind)
		scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(kind+"List"), &unstructured.UnstructuredList{})
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.ProfileBundle{}).Build()
	w.api, w.calls = counted(api)
	w.must(w.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Finalizers: []string{"x"}}}))
	w.trust("")
	w.restart()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// restart is another leader: what was in memory is gone, and what is stored is handed over again.
func (w *world) restart() {
	w.t.Helper()
	anchor, err := inforce.ParseAnchor([]byte(w.root.Line+"\n"), []byte("any"))
	w.must(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ledger := keeper.New(w.api, w.api, anchor, func(_ context.Context, reason, _ string) { w.events = append(w.events, "alarm "+reason) }, log)
	_, _, err = ledger.Load(w.t.Context())
	w.must(err)
	w.registry = prometheus.NewRegistry()
	metrics, err := NewMetrics(w.registry)
	w.must(err)
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{fragment.KindContainerProfile, fragment.KindRules, fragment.KindRuleBinding} {
		mapper.Add(schema.FromAPIVersionAndKind(fragment.APIVersionOf(kind), kind), apimeta.RESTScopeNamespace)
	}
	w.Controller = (&Controller{
		Client: w.api, Reader: w.api, Mapper: mapper, Get: w, Judge: judge, Trust: w, Ledger: ledger, Events: w, Conditions: w,
		Metrics: metrics, Log: log, Now: func() time.Time { return w.now }, Interval: 10 * time.Minute,
	}).Init()
	for _, kind := range kinds() {
		w.index.learn(kind)
	}
	for _, kind := range []string{fragment.KindContainerProfile, fragment.KindRules, fragment.KindRuleBinding} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(fragment.APIVersionOf(kind), kind+"List"))
		w.must(w.api.List(w.t.Context(), &list))
		for i := range list.Items {
			w.notice(&list.Items[i])
		}
	}
	var reports v1alpha1.ProfileBundleList
	w.must(w.api.List(w.t.Context(), &reports))
	for i := range reports.Items {
		w.index.put(&facts{Key: Key{kindBundle, reports.Items[i].Namespace, reports.Items[i].Name}})
	}
}

// judge is a stand-in of the engine's: who may sign, and which class.
func judge(s verify.Snapshot, o *fragment.Object) (*fragment.Fragment, *decision.Error) {
	f, err := fragment.Verify(o)
	if err != nil {
		return nil, decision.From(err)
	}
	class, ok := s.Policy.FragmentClasses[f.Class]
	signers := class.Signers
	if f.Kind == fragment.KindRules {
		var rules trustpolicy.RuleClass
		rules, ok = s.Policy.RuleClasses[f.Class]
		signers = rules.Signers
	}
	switch {
	case !ok:
		return f, decision.Errorf(decision.ClassUnknown, "no class %q", f.Class)
	case slices.Contains(s.Policy.RevokedFragmentSigners, f.Signer):
		return f, decision.Errorf(decision.SignerRevoked, "revoked")
	case !slices.Contains(signers, f.Signer):
		return f, decision.Errorf(decision.SignerUnknown, "not of class %q", f.Class)
	}
	return f, nil
}

// trust puts a policy in force, with more at the end of its document.
func (w *world) trust(more string) {
	w.t.Helper()
	document := testkit.PolicyDocument(testkit.NewSigner(w.t, "ed25519")) + fmt.Sprintf(`
fragmentClasses:
  base: {signers: [%q], allowedSpecPaths: ["*"]}
  admission: {signers: [%q], allowedSpecPaths: [ingress, egress]}
  overlay: {signers: [%q], allowedSpecPaths: [execs, opens]}
`, w.vendor.Fingerprint, w.operator.Fingerprint, w.operator.Fingerprint) + more
	w.policy = testkit.Policy(w.t, document, w.root)
}

func (w *world) Snapshot(now time.Time) (verify.Snapshot, error) {
	return verify.Snapshot{Policy: w.policy, ClusterID: "any", Now: now}, w.trustError
}

func (w *world) Normal(_ context.Context, about corev1.ObjectReference, reason, _ string) bool {
	w.events = append(w.events, "Normal "+about.Kind+"/"+about.Name+" "+reason)
	return true
}

func (w *world) Warning(_ context.Context, about corev1.ObjectReference, reason, _ string) bool {
	w.events = append(w.events, "Warning "+about.Kind+"/"+about.Name+" "+reason)
	return true
}

func (w *world) Set(_ context.Context, c metav1.Condition) (bool, bool, error) {
	w.conditions[c.Type] = c
	return true, true, nil
}

// Get is what the API server would send.
func (w *world) Get(ctx context.Context, k rejudge.Kind, namespace, name string) (json.RawMessage, error) {
	w.asking.Lock()
	w.gets = append(w.gets, name)
	w.asking.Unlock()
	if w.failing[name] {
		return nil, errors.New("the storage does not answer")
	}
	u := w.read(ctx, k.Kind, namespace, name)
	if u == nil {
		return nil, nil
	}
	return u.MarshalJSON()
}

func (w *world) read(ctx context.Context, kind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(fragment.APIVersionOf(kind), kind))
	err := w.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return u
}

// notice tells the Controller what a watch would.
func (w *world) notice(u *unstructured.Unstructured) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(u.GroupVersionKind())
	m.Name, m.Namespace, m.UID, m.ResourceVersion = u.GetName(), u.GetNamespace(), u.GetUID(), u.GetResourceVersion()
	m.Labels, m.Annotations, m.DeletionTimestamp = u.GetLabels(), u.GetAnnotations(), u.GetDeletionTimestamp()
	slim, ok := Slim(m)
	if !ok {
		w.t.Fatalf("%s was not slimmed", u.GetKind())
	}
	w.seen(slim)
}

// put stores an object over what is there.
func (w *world) put(text []byte) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	w.must(u.UnmarshalJSON(text))
	if u.GetNamespace() == "" {
		u.SetNamespace(shop)
	}
	u.SetUID(types.UID("uid of " + u.GetName()))
	if old := w.read(w.t.Context(), u.GetKind(), u.GetNamespace(), u.GetName()); old != nil {
		u.SetResourceVersion(old.GetResourceVersion())
		w.must(w.api.Update(w.t.Context(), u))
	} else {
		w.must(w.api.Create(w.t.Context(), u))
	}
	w.notice(w.read(w.t.Context(), u.GetKind(), u.GetNamespace(), u.GetName()))
}

func (w *world) delete(kind, name string) {
	w.t.Helper()
	u := w.read(w.t.Context(), kind, shop, name)
	w.must(w.api.Delete(w.t.Context(), u))
	w.gone(kind, &kept{facts: &facts{Key: Key{kind, shop, name}}})
}

// edit changes a stored ContainerProfile as somebody who asks nobody.
func (w *world) edit(name string, change func(*unstructured.Unstructured)) {
	w.t.Helper()
	u := w.read(w.t.Context(), fragment.KindContainerProfile, shop, name)
	change(u)
	w.must(w.api.Update(w.t.Context(), u))
	w.notice(u)
}

// part is a signed fragment of bundle redis.
func (w *world) part(s testkit.FragmentSigner, class, name string, version int, spec string) []byte {
	w.t.Helper()
	return s.Sign(w.t, fmt.Sprintf(`{apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1, kind: ContainerProfile, metadata: {name: %s, namespace: shop,
  labels: {signature.kubescape.io/bundle: redis, signature.kubescape.io/fragment-class: %s, signature.kubescape.io/version: "%d"}}, spec: %s}`, name, class, version, spec), true)
}

// three puts the three fragments of the story.
func (w *world) three() {
	w.t.Helper()
	w.put(w.part(w.vendor, "base", "redis-base", 1, `{execs: [{path: /usr/bin/redis-server}], syscalls: [read, write]}`))
	w.put(w.part(w.operator, "admission", "redis-net", 1, `{egress: [{identifier: dns, type: external, dns: example.org}]}`))
	w.put(w.part(w.operator, "overlay", "redis-site", 1, `{execs: [{path: /usr/bin/id}]}`))
}

// settle looks at the bundle until nothing is left to do.
func (w *world) settle() {
	w.t.Helper()
	for range 3 {
		if _, err := w.look(w.t.Context(), item{ID: ID{shop, redis}}); err != nil {
			w.t.Fatal(err)
		}
		if u := w.read(w.t.Context(), fragment.KindContainerProfile, shop, redis); u != nil {
			w.notice(u)
		}
		if report := w.report(); report != nil {
			w.index.put(&facts{Key: Key{kindBundle, shop, redis}})
		}
	}
}

// execs are the programs that the composite allows; "none" where there is no composite.
func (w *world) execs() string {
	w.t.Helper()
	u := w.read(w.t.Context(), fragment.KindContainerProfile, shop, redis)
	if u == nil {
		return "none"
	}
	text, err := u.MarshalJSON()
	w.must(err)
	var o struct {
		Spec struct{ Execs []struct{ Path string } }
	}
	w.must(json.Unmarshal(text, &o))
	var paths []string
	for _, exec := range o.Spec.Execs {
		paths = append(paths, exec.Path)
	}
	return strings.Join(paths, " ")
}

func (w *world) report() *v1alpha1.ProfileBundle {
	w.t.Helper()
	report := &v1alpha1.ProfileBundle{}
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: shop, Name: redis}, report)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return report
}

// condition is "Status Reason".
func (w *world) condition(name string) string {
	w.t.Helper()
	report := w.report()
	if report == nil {
		return "no report"
	}
	c := apimeta.FindStatusCondition(report.Status.Conditions, name)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

func (w *world) wantAssembled(want string) {
	w.t.Helper()
	if got := w.condition(v1alpha1.ConditionAssembled); got != want {
		w.t.Errorf("Assembled is %q, want %q: %+v", got, want, w.report())
	}
}

func (w *world) wantExecs(want string) {
	w.t.Helper()
	if got := w.execs(); got != want {
		w.t.Errorf("the composite allows %q, want %q", got, want)
	}
}

// said are the events since it was asked last.
func (w *world) said() []string {
	events := w.events
	w.events = nil
	return events
}

// gauge is the value of a metric without labels.
func (w *world) gauge(name string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}

func testkitSigner(w *world) testkit.FragmentSigner { return testkit.NewFragmentSigner(w.t) }

func parse(w *world, text []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	w.must(u.UnmarshalJSON(text))
	return u
}

// counted counts what is asked of an API server.
func counted(api client.WithWatch) (client.WithWatch, map[string]int) {
	var mu sync.Mutex // some are asked at once
	calls := map[string]int{}
	count := func(verb string, o client.Object) {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if kind == "" {
			kind = strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
		}
		mu.Lock()
		defer mu.Unlock()
		calls[verb+" "+kind]++
	}
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			count("get", o)
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			count("create", o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			count("update", o)
			return c.Update(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			count(sub, o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}), calls
}
