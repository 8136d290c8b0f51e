package hostrun

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/testkit/cluster"
)

// fakeCourier is a fake: it plays hosts without a connection.
type fakeCourier struct {
	deliveries []delivery.Order
	recalls    []envelope.RunID

	report    delivery.Report
	unreached bool   // the fake fails before commit
	before    func() // the host is reached, or not
	onCommit  func()
	onDeliver func()
	memory    delivery.Memory
	recalled  delivery.Report
}

func (c *fakeCourier) Deliver(_ context.Context, o delivery.Order, commit func() error) (delivery.Report, error) {
	c.deliveries = append(c.deliveries, o)
	if c.before != nil {
		c.before()
	}
	if c.unreached {
		return c.report, nil
	}
	if c.onCommit != nil {
		c.onCommit()
	}
	if err := commit(); err != nil {
		return delivery.Report{}, err
	}
	if c.onDeliver != nil {
		c.onDeliver()
	}
	return c.report, nil
}

func (c *fakeCourier) Recall(_ context.Context, _ transport.Target, _ transport.Limits, id envelope.RunID, _ envelope.Phase) (delivery.Memory, delivery.Report) {
	c.recalls = append(c.recalls, id)
	return c.memory, c.recalled
}

func succeeded() delivery.Report {
	return delivery.Report{Result: delivery.Succeeded, Message: "the script exited 0", Trailer: delivery.Whole, Transcript: "hello\n"}
}

func failed(result delivery.Result, shim, exit int) delivery.Report {
	return delivery.Report{Result: result, Message: "as told", ShimExit: shim, ScriptExit: exit, Trailer: delivery.None}
}

// world is a cluster with one host, one signed profile and one run of it.
type world struct {
	t       *testing.T
	client  client.Client
	courier *fakeCourier
	r       *Reconciler
	times   Timekeeper
	events  *events.FakeRecorder
	root    testkit.Signer
	signer  testkit.Signer
	now     time.Time
	writes  int

	failWrites int // as many are refused

	registry *prometheus.Registry
	anchor   inforce.Anchor
	refuses  string // kind of which reading is forbidden

	host, profile, policy *unstructured.Unstructured
	secret                *corev1.Secret
	run                   *v1alpha1.HostRun
	more                  []client.Object // what else is stored
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: testkit.Now(), courier: &fakeCourier{report: succeeded()}}
	w.root, w.signer = testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	login, host := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.host = cluster.Host("host-a", w.signer.Line)
	w.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "host-a-ssh"},
		Data:       map[string][]byte{"privateKey": login.PEM, "knownHost": []byte("10.0.0.7 " + host.Line + "\n")},
	}
	w.profile = judge.NewObject(object.GroupKPSSH, judge.KPSSHVersion, object.KindJoinProfile)
	w.profile.SetName("tls-bootstrap")
	scripts := map[string]any{}
	for _, phase := range script.Phases() {
		scripts[string(phase)] = scriptOf(phase)
	}
	w.profile.Object["spec"] = map[string]any{"version": "1", "scripts": scripts, "signatures": map[string]any{}, "timeouts": map[string]any{"join": "20m"}}
	w.sign(script.Join)
	w.setPolicy(testkit.PolicyDocument(w.signer))
	w.run = &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "run-1", Generation: 1, CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: "host-a"}, ProfileRef: v1alpha1.ObjectRef{Name: "tls-bootstrap"},
			Phase: v1alpha1.HostRunJoin, NodeName: "pool-1", Vars: map[string]v1alpha1.HostRunVar{"clusterDNS": "10.0.0.10"},
		},
	}
	return w
}

func scriptOf(phase script.Phase) string {
	return "#!/usr/bin/env bash\nset -eu\necho " + string(phase) + "\n"
}

// sign signs one phase. Each signature is put to ssh-keygen as well, which takes
// time, so a world has no more of them than its test needs.
func (w *world) sign(phase script.Phase) {
	signature := testkit.Sign(w.t, w.signer, script.Namespace, []byte(scriptOf(phase)))
	set(w.profile, signature, "spec", "signatures", string(phase))
}

func (w *world) setPolicy(document string) {
	w.policy = cluster.TrustPolicy(document, testkit.Sign(w.t, w.root, trustpolicy.Namespace, []byte(document)))
}

// start stores the world's objects, nil ones left out, and makes a relay.
func (w *world) start() {
	w.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.HostRun{}, judge.NodeNames, judge.NodeNameOf).WithStatusSubresource(&v1alpha1.HostRun{})
	for _, o := range []*unstructured.Unstructured{w.host, w.profile, w.policy} {
		if o != nil {
			b = b.WithObjects(o)
		}
	}
	if w.secret != nil {
		b = b.WithObjects(w.secret)
	}
	for _, o := range w.more {
		b = b.WithObjects(o)
	}
	b = b.WithObjects(w.run).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isSecret := o.(*corev1.Secret); isSecret && w.refuses == "Secret" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no role"))
			}
			if _, isLedger := o.(*v1alpha1.Ledger); isLedger && w.refuses == "Ledger" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "ledgers"}, key.Name, errors.New("no role"))
			}
			return c.Get(ctx, key, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if w.failWrites > 0 {
				w.failWrites--
				return apierrors.NewServiceUnavailable("away")
			}
			w.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	w.client = b.Build()
	w.restart()
}

// restart is a relay that starts anew beside the same objects.
func (w *world) restart() {
	w.t.Helper()
	w.registry = prometheus.NewRegistry()
	metrics, err := NewMetrics(w.registry, NewLine(10))
	if err != nil {
		w.t.Fatal(err)
	}
	trusted, err := judge.NewMetrics(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	anchor, err := inforce.ParseAnchor([]byte(w.root.Line), []byte(trustpolicy.AnyCluster))
	if err != nil {
		w.t.Fatal(err)
	}
	w.anchor = anchor
	w.events = events.NewFakeRecorder(1000)
	w.r = &Reconciler{
		Events: w.events,
		Client: w.client, Reader: w.client, Courier: w.courier, Metrics: metrics,
		Policy:    judge.NewPolicySource(w.client, anchor, trusted, logr.Discard()),
		ClusterID: anchor.ClusterID, Limits: transport.DefaultLimits(),
		Now: func() time.Time { return w.now }, Rand: rand.Reader,
	}
	w.times = Timekeeper{Reconciler: w.r}
}

// metric is the value of a gauge, by its name and labels.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	return cluster.Metric(w.t, w.registry, name)
}

func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	result, err := w.r.Reconcile(w.t.Context(), requestOf(w.run))
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// keepTime does what is due without the host.
func (w *world) keepTime() ctrl.Result {
	w.t.Helper()
	result, err := w.times.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.run)})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// told takes the events since it was last asked, as "Type Reason note".
func (w *world) told() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (w *world) get() *v1alpha1.HostRun {
	w.t.Helper()
	var run v1alpha1.HostRun
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.run), &run); err != nil {
		w.t.Fatal(err)
	}
	return &run
}

// want compares one condition of the stored run.
func (w *world) want(kind string, status metav1.ConditionStatus, reason, text string) {
	w.t.Helper()
	c := condition(w.get(), kind)
	if c == nil {
		w.t.Fatalf("no condition %s, want %s %s", kind, status, reason)
	}
	if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		w.t.Fatalf("%s is %s, %s: %s; want %s, %s: %q", kind, c.Status, c.Reason, c.Message, status, reason, text)
	}
}

func (w *world) wantSent(n int) {
	w.t.Helper()
	if len(w.courier.deliveries) != n {
		w.t.Fatalf("sent %d times, want %d", len(w.courier.deliveries), n)
	}
}
