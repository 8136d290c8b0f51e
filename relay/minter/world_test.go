package minter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/testkit/cluster"
)

const takesToken = "KPSSH_BOOTSTRAP_TOKEN required secret re [a-z0-9]{6}[.][a-z0-9]{16}"

// world is a cluster with hosts, one signed profile whose join script takes a token, and runs of it.
type world struct {
	t        *testing.T
	client   client.WithWatch
	m        *Minter
	now      time.Time
	root     testkit.Signer
	signer   testkit.Signer
	registry *prometheus.Registry

	policy, profile *unstructured.Unstructured
	objects         []client.Object

	binding string                                    // of the auto-approver; "" is none
	asked   []authorizationv1.SubjectAccessReviewSpec // SubjectAccessReviews
	fails   func(verb string, o client.Object) error  // what the API server does not do
	created map[types.NamespacedName]*corev1.Secret   // each Secret ever created
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: testkit.Now(), created: map[types.NamespacedName]*corev1.Secret{}}
	w.root, w.signer = testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.policy = w.signedPolicy(testkit.PolicyDocument(w.signer))
	w.profile = w.signedProfile(takesToken)
	for _, name := range []string{"host-a", "host-b", "host-c"} {
		w.objects = append(w.objects, w.host(name))
	}
	return w
}

func (w *world) signedPolicy(document string) *unstructured.Unstructured {
	return cluster.TrustPolicy(document, testkit.Sign(w.t, w.root, trustpolicy.Namespace, []byte(document)))
}

func (w *world) host(name string) *unstructured.Unstructured {
	return cluster.Host(name, w.signer.Line)
}

// signedProfile has a join script whose warrant declares the parameters.
func (w *world) signedProfile(params ...string) *unstructured.Unstructured {
	w.t.Helper()
	anywhere, err := warrant.ParseTarget("any")
	w.must(err)
	scripts := map[string]any{}
	var signature string
	for _, phase := range script.Phases() {
		block := &warrant.Warrant{Profile: "tls", Phase: phase, Serial: 7, NotAfter: w.now.Add(24 * time.Hour).Unix(), Targets: []warrant.Target{anywhere}, Timeout: 120}
		for _, words := range params {
			p, err := warrant.ParseParam(words)
			w.must(err)
			block.Params = append(block.Params, p)
		}
		text, err := warrant.Set([]byte("#!/usr/bin/env bash\nset -eu\necho "+string(phase)+"\n"), block)
		w.must(err)
		scripts[string(phase)] = string(text)
		if phase == script.Join {
			signature = testkit.Sign(w.t, w.signer, script.Namespace, text)
		}
	}
	p := judge.NewObject(object.GroupKPSSH, judge.KPSSHVersion, object.KindJoinProfile)
	p.SetName("tls")
	p.Object["spec"] = map[string]any{"version": "7", "scripts": scripts, "signatures": map[string]any{"join": signature}}
	return p
}

// run is one that the relay says is next, made that many seconds ago.
func (w *world) run(name, host, node string, age int) *v1alpha1.HostRun {
	return &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pool", Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(w.now.Add(-time.Duration(age) * time.Second)),
		},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: host}, ProfileRef: v1alpha1.ObjectRef{Name: "tls"}, Phase: v1alpha1.HostRunJoin, NodeName: node,
		},
		Status: v1alpha1.HostRunStatus{Conditions: []metav1.Condition{delivered(metav1.ConditionFalse, token.Pending)}},
	}
}

// over is a run that was sent and ended, that long ago, with that word on its success.
func (w *world) over(name, host, node string, succeeded metav1.ConditionStatus, ago time.Duration) *v1alpha1.HostRun {
	r := w.run(name, host, node, 3600)
	r.Status.Conditions = []metav1.Condition{
		delivered(metav1.ConditionTrue, "Whole"),
		{Type: v1alpha1.ConditionSucceeded, Status: succeeded, Reason: "Ended", LastTransitionTime: metav1.NewTime(w.now.Add(-ago))},
	}
	return r
}

func delivered(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionDelivered, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
}

// start stores everything and starts a minter.
func (w *world) start(runs ...*v1alpha1.HostRun) {
	w.t.Helper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, authorizationv1.AddToScheme} {
		w.must(add(types))
	}
	b := fake.NewClientBuilder().WithScheme(types).WithIndex(&v1alpha1.HostRun{}, judge.NodeNames, judge.NodeNameOf).WithStatusSubresource(&v1alpha1.HostRun{}).WithObjects(w.objects...)
	for _, o := range []*unstructured.Unstructured{w.policy, w.profile} {
		if o != nil {
			b = b.WithObjects(o)
		}
	}
	for _, r := range runs {
		b = b.WithObjects(r)
	}
	w.client = b.WithInterceptorFuncs(w.faults()).Build()
	w.restart()
}

// faults play the authorizer, keep what was created, and let an API server fail.
func (w *world) faults() interceptor.Funcs {
	fails := func(verb string, o client.Object) error {
		if w.fails == nil {
			return nil
		}
		return w.fails(verb, o)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := fails("create", o); err != nil {
				return err
			}
			if review, ok := o.(*authorizationv1.SubjectAccessReview); ok {
				w.asked = append(w.asked, review.Spec)
				review.Status.Allowed = w.binding != "" && review.Spec.ResourceAttributes.Subresource == "nodeclient"
				review.Status.Reason = w.binding
				return nil
			}
			if s, ok := o.(*corev1.Secret); ok {
				s.UID = types.UID(fmt.Sprintf("secret-%d", len(w.created))) // which the fake does not give
				w.created[client.ObjectKeyFromObject(s)] = s.DeepCopy()
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := fails("delete", o); err != nil {
				return err
			}
			if err := sameUID(ctx, c, o, opts...); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := fails("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := fails("status", o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, secret := o.(*corev1.Secret); secret && o.GetLabels()["by"] != "test" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("the minter reads no Secret"))
			}
			return c.Get(ctx, key, o, opts...)
		},
	}
}

// sameUID holds a deletion to its precondition, which the fake does not.
func sameUID(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	want := new(client.DeleteOptions).ApplyOptions(opts).Preconditions
	if want == nil || want.UID == nil {
		return nil
	}
	var stored corev1.Secret
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), &stored); err != nil {
		return err
	}
	if stored.UID != *want.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.GetName(), errors.New("another UID"))
	}
	return nil
}

// restart is a minter that starts anew beside the same objects.
func (w *world) restart() {
	w.t.Helper()
	w.m = w.another()
}

// another is one more minter beside the same objects.
func (w *world) another() *Minter {
	w.t.Helper()
	w.registry = prometheus.NewRegistry()
	metrics, err := NewMetrics(w.registry)
	w.must(err)
	trusted, err := judge.NewMetrics(w.registry)
	w.must(err)
	anchor, err := inforce.ParseAnchor([]byte(w.root.Line), []byte(trustpolicy.AnyCluster))
	w.must(err)
	return &Minter{
		Client: w.client, Objects: judge.Objects{Reader: w.client, Runs: w.client},
		Policy: judge.NewPolicySource(w.client, anchor, trusted, logr.Discard()),
		Book:   NewBook(), Metrics: metrics, Now: func() time.Time { return w.now },
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pool", Name: name}}
}

// reconcile does one step, as often as the minter asks for more at once.
func (w *world) reconcile(name string) {
	w.t.Helper()
	for range 4 {
		result, err := w.m.Reconcile(w.t.Context(), request(name))
		w.must(err)
		if result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
			return
		}
	}
}

func (w *world) get(name string) *v1alpha1.HostRun {
	w.t.Helper()
	var run v1alpha1.HostRun
	w.must(w.client.Get(w.t.Context(), request(name).NamespacedName, &run))
	return &run
}

// change writes a run's status as the relay does.
func (w *world) change(name string, change func(*v1alpha1.HostRun)) {
	w.t.Helper()
	run := w.get(name)
	change(run)
	w.must(w.client.Status().Update(w.t.Context(), run))
}

// becomes sets a condition of a run.
func (w *world) becomes(name, kind string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.change(name, func(run *v1alpha1.HostRun) {
		run.Status.Conditions = slices.DeleteFunc(run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(w.now)})
	})
}

// vanish takes a run away past its finalizer.
func (w *world) vanish(name string) {
	w.t.Helper()
	run := w.get(name)
	run.Finalizers = nil
	w.must(w.client.Update(w.t.Context(), run))
	w.must(w.client.Delete(w.t.Context(), run))
}

// secrets are those that are there, "namespace/name", sorted.
func (w *world) secrets() []string {
	w.t.Helper()
	var all corev1.SecretList
	w.must(w.client.List(w.t.Context(), &all))
	var names []string
	for _, s := range all.Items {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	slices.Sort(names)
	return names
}

// wantJoined compares a run's condition Joined.
func (w *world) wantJoined(name string, status metav1.ConditionStatus, reason, text string) {
	w.t.Helper()
	c := joined(w.get(name))
	if c == nil {
		w.t.Fatalf("%s: no condition Joined, want %s %s", name, status, reason)
	}
	if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		w.t.Fatalf("%s: Joined is %s, %s: %s; want %s, %s: %q", name, c.Status, c.Reason, c.Message, status, reason, text)
	}
}

// wantToken wants the run to have one token, whose two Secrets are there and no others.
func (w *world) wantToken(name string) string {
	w.t.Helper()
	run := w.get(name)
	w.wantJoined(name, metav1.ConditionUnknown, token.Issued, "")
	want := []string{"kube-system/bootstrap-token-" + run.Status.TokenID, "pool/hw-token-uid-" + name}
	if got := w.secrets(); !slices.Equal(got, want) {
		w.t.Fatalf("Secrets %v, want %v", got, want)
	}
	if e, ok := w.m.Book.Holder(run.Status.TokenID); !ok || e.UID != run.UID || !hasFinalizer(run) {
		w.t.Fatalf("the minter's own record: %+v, %v; finalizers %v", e, ok, run.Finalizers)
	}
	return run.Status.TokenID
}

// wantNothing wants nothing to be left of any token.
func (w *world) wantNothing() {
	w.t.Helper()
	if got := w.secrets(); len(got) > 0 {
		w.t.Fatalf("left behind: %v", got)
	}
	if n := w.m.Book.size(); n != 0 {
		w.t.Fatalf("the minter still knows of %d tokens", n)
	}
	var all v1alpha1.HostRunList
	w.must(w.client.List(w.t.Context(), &all))
	for i := range all.Items {
		if hasFinalizer(&all.Items[i]) {
			w.t.Fatalf("%s is still held", all.Items[i].Name)
		}
	}
}

// metric is the value of a counter or gauge, by its name and labels.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	return cluster.Metric(w.t, w.registry, name)
}
