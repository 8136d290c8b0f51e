package statements

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/schedule"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/testkit/cluster"
)

// world is a cluster with one host and what the roots say.
type world struct {
	t      *testing.T
	now    time.Time
	root   testkit.Signer
	signer testkit.Signer
	policy verify.Snapshot
	fault  error // of reading the policy
	client client.Client
	writes int

	host  *unstructured.Unstructured
	calls [][]statement.Signed
	// answer is what the fake host answers to each statement.
	answer func(n int) delivery.Result
	reach  delivery.Result
	key    testkit.Signer // of the host
	proves func(delivery.Question) []byte
	c      *Courier

	registry *prometheus.Registry
}

// metric is the value of a gauge, by its name and labels.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	return cluster.Metric(w.t, w.registry, name)
}

func (w *world) Snapshot(context.Context, time.Time) (verify.Snapshot, error) {
	s := w.policy
	s.Now = w.now
	return s, w.fault
}

// turns is a fake: nobody else wants the host.
type turns struct{}

func (turns) Take(context.Context, schedule.Claim) (func(), error) { return func() {}, nil }

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		t: t, now: testkit.Now(), root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"),
		answer: func(int) delivery.Result { return delivery.Applied }, reach: delivery.Applied,
	}
	w.policy = verify.Snapshot{ClusterID: "prod-1", Policy: testkit.Policy(t, testkit.PolicyDocument(w.signer), w.root)}
	login := testkit.NewSigner(t, "ed25519")
	w.key = testkit.NewSigner(t, "ed25519")
	w.proves = func(delivery.Question) []byte { return nil }
	w.host = cluster.Host("host-a", w.signer.Line)
	w.host.SetUID("uid-1")
	w.host.SetGeneration(1)
	w.host.Object["status"] = map[string]any{"claimRef": map[string]any{"name": "claimed"}} // claimed hosts are told as well
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "host-a-ssh"},
		Data:       map[string][]byte{"privateKey": login.PEM, "knownHost": []byte(w.key.Line + "\n")},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		must(t, add(scheme))
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.HostState{}, &v1alpha1.HostStatement{}).
		WithObjects(append(objects, w.host, secret)...).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			w.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	w.restart()
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// restart is a relay that starts anew.
func (w *world) restart() {
	w.registry = prometheus.NewRegistry()
	metrics, err := NewMetrics(w.registry)
	must(w.t, err)
	clock := func() time.Time { return w.now }
	w.c = New(Courier{
		Client: w.client, Reader: w.client, Policy: w, Source: &Source{Reader: w.client, Policy: w, Now: clock}, Turns: turns{}, Call: w.call,
		ClusterID: "prod-1", Limits: transport.DefaultLimits(), Metrics: metrics, Now: clock,
	})
}

// call plays the host.
func (w *world) call(_ context.Context, _ transport.Target, _ transport.Limits, s []statement.Signed, q delivery.Question) (delivery.Visit, error) {
	w.calls = append(w.calls, s)
	v := delivery.Visit{Result: w.reach, Message: "as told", Proof: w.proves(q)}
	for i, one := range s {
		read, err := statement.Parse(one.Text)
		must(w.t, err)
		report := delivery.StatementReport{Kind: read.Kind, Serial: read.Serial, Result: w.answer(i), Message: "as told"}
		if w.reach != delivery.Applied {
			report.Result, report.ShimExit = w.reach, envelope.Unknown
		}
		v.Statements = append(v.Statements, report)
	}
	return v, nil
}

// say stores a HostStatement that a key signed.
func (w *world) say(name string, kind statement.Kind, serial int, place string, by testkit.Signer) {
	w.t.Helper()
	body := "revoke SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0\n"
	if kind == statement.KindFloor {
		body = "floor tls 1\n"
	}
	text := fmt.Sprintf("hostwarrant-statement: v1 %s\nserial %d\nissued %d\n%s%send\n", kind, serial, testkit.Now().Add(-time.Hour).Unix(), place, body)
	must(w.t, w.client.Create(w.t.Context(), &v1alpha1.HostStatement{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       v1alpha1.HostStatementSpec{Statement: text, Signatures: []string{testkit.Sign(w.t, by, statement.Namespace, []byte(text))}},
	}))
	w.c.Source.Stale()
}

const here = "cluster prod-1\n"

func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	result, err := w.c.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pool", Name: "host-a"}})
	must(w.t, err)
	return result
}

// wantCalls compares how often the host was called, and the serials that it was told last.
func (w *world) wantCalls(n int, told string) {
	w.t.Helper()
	if len(w.calls) != n {
		w.t.Fatalf("called %d times, want %d", len(w.calls), n)
	}
	var serials []string
	if n > 0 {
		for _, s := range w.calls[n-1] {
			read, err := statement.Parse(s.Text)
			must(w.t, err)
			serials = append(serials, fmt.Sprintf("%s %d", read.Kind, read.Serial))
		}
	}
	if got := strings.Join(serials, ", "); got != told {
		w.t.Fatalf("told %q, want %q", got, told)
	}
}

func (w *world) state() v1alpha1.HostState {
	w.t.Helper()
	var s v1alpha1.HostState
	must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "pool", Name: "host-a"}, &s))
	return s
}

func (w *world) wantCondition(kind string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.state().Status.Conditions, kind); c == nil || c.Status != status || c.Reason != reason {
		w.t.Fatalf("%s is %+v, want %s %s", kind, c, status, reason)
	}
}

func TestAHostIsToldOnceAndThenLeftAlone(t *testing.T) {
	w := newWorld(t)
	stranger := testkit.NewSigner(t, "ed25519")
	w.say("r4", statement.KindRevoke, 4, here, w.root)
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	w.say("f1", statement.KindFloor, 1, here, w.root)
	w.say("class", statement.KindFloor, 2, here+"target class gpu\n", w.root)
	w.say("other", statement.KindRevoke, 9, "cluster prod-2\n", w.root)
	w.say("nobody", statement.KindRevoke, 99, here, stranger)
	w.reconcile()
	w.wantCalls(1, "revoke 5, floor 1")
	w.wantCondition("Current", metav1.ConditionTrue, "Current")
	w.wantCondition("Reachable", metav1.ConditionTrue, "Unproven") // the fake proves nothing
	s := w.state()
	if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != "uid-1" || s.Status.LastContact == nil || len(s.Status.Statements) != 2 {
		t.Fatalf("%+v", s)
	}
	writes := w.writes
	for range 50 { // news about others, resyncs
		if again := w.reconcile(); again.RequeueAfter < 50*time.Minute {
			t.Fatalf("looks again after %s", again.RequeueAfter)
		}
	}
	w.wantCalls(1, "revoke 5, floor 1")
	if w.writes != writes {
		t.Errorf("%d writes about nothing", w.writes-writes)
	}

	w.say("r6", statement.KindRevoke, 6, here, w.root)
	w.reconcile()
	w.wantCalls(2, "revoke 6")
	w.now = w.now.Add(80 * time.Minute)
	w.reconcile()
	w.wantCalls(3, "") // the slow look

	w.restart()
	w.reconcile()
	w.wantCalls(3, "") // what its HostState tells is enough not to call it at once
	w.say("r7", statement.KindRevoke, 7, here, w.root)
	w.reconcile()
	w.wantCalls(4, "revoke 7")
}

func TestBeforeARunAHostIsToldWhatThisProcessDidNotSeeItTake(t *testing.T) {
	w := newWorld(t)
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	h := w.parsed()
	before := func() int { return w.before(h) }
	if n := before(); n != 1 {
		t.Fatalf("%d statements before the first run, want 1", n)
	}
	w.reconcile()
	w.wantCalls(1, "revoke 5")
	if n := before(); n != 0 {
		t.Fatalf("%d statements before a run of a host that knows them", n)
	}
	w.restart()
	w.reconcile()
	if n := before(); n != 1 {
		t.Fatalf("%d statements before a run, by the word of a HostState alone; want 1", n)
	}
	telling, err := w.c.Before(t.Context(), h, w.target(w.key))
	must(t, err)
	telling.Heard([]delivery.StatementReport{{Kind: statement.KindRevoke, Serial: 5, Result: delivery.Applied}})
	if n := before(); n != 0 {
		t.Fatalf("%d statements after the run that told it", n)
	}
	w.fault = fmt.Errorf("the API server does not answer")
	w.c.Source.Stale()
	if _, err := w.c.Before(t.Context(), h, w.target(w.key)); err == nil {
		t.Fatal("a run goes on although nobody knows what its host is to be told")
	}
}

// target is a host with this key.
func (w *world) target(key testkit.Signer) transport.Target {
	w.t.Helper()
	pin, err := transport.ParsePin([]byte(key.Line))
	must(w.t, err)
	return transport.Target{Pin: pin}
}

// parsed is the host as a run has it.
func (w *world) parsed() *object.Host {
	w.t.Helper()
	raw, err := w.host.MarshalJSON()
	must(w.t, err)
	h, err := object.ParseHost(raw)
	must(w.t, err)
	return h
}

// before is how many statements the host is told before a run.
func (w *world) before(h *object.Host) int {
	w.t.Helper()
	telling, err := w.c.Before(w.t.Context(), h, w.target(w.key))
	must(w.t, err)
	return len(telling.Statements)
}

// A host that was not reached has refused nothing: once its pin is right it is told, before its next script.
func TestOnlyAHostRefusesAStatement(t *testing.T) {
	for what, c := range map[string]struct {
		reach  delivery.Result
		answer delivery.Result
		want   int
	}{
		"another host key":      {reach: delivery.HostKeyMismatch, want: 1},
		"no pin":                {reach: delivery.HostKeyNotPinned, want: 1},
		"no key to log in with": {reach: delivery.LoginKeyInvalid, want: 1},
		"silent":                {reach: delivery.Unreachable, want: 1},
		"cut":                   {reach: delivery.Cut, want: 1},
		"busy":                  {reach: delivery.Applied, answer: delivery.Busy, want: 1},
		"refused by the host":   {reach: delivery.Applied, answer: delivery.StatementRejected},
		"taken":                 {reach: delivery.Applied, answer: delivery.Applied},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.reach, w.answer = c.reach, func(int) delivery.Result { return c.answer }
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			w.wantCalls(1, "revoke 5")
			if n := w.before(w.parsed()); n != c.want {
				t.Errorf("%d statements before the next run, want %d", n, c.want)
			}
		})
	}
}

// What is told of a host that had the name before is not believed of this one, nor what is told of where it pointed.
func TestAHostStateOfAnotherHostTellsNothing(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		calls  int
	}{
		"the same host":        {func(*unstructured.Unstructured) {}, 1},
		"made anew":            {func(u *unstructured.Unstructured) { u.SetUID("uid-2") }, 2},
		"pointing elsewhere":   {func(u *unstructured.Unstructured) { u.SetGeneration(2) }, 2},
		"with another comment": {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }, 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			w.wantCalls(1, "revoke 5")
			must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(w.host), w.host))
			must(t, w.client.Delete(t.Context(), w.host.DeepCopy()))
			w.host.SetResourceVersion("")
			c.change(w.host)
			must(t, w.client.Create(t.Context(), w.host))
			w.restart()
			w.reconcile()
			w.wantCalls(c.calls, "revoke 5")
		})
	}
}

func TestAHostThatWasAwayIsCaughtUp(t *testing.T) {
	w := newWorld(t)
	w.reach = delivery.Unreachable
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	var waited time.Duration
	for n := range 8 {
		again := w.reconcile()
		w.wantCalls(n+1, "revoke 5")
		if again.RequeueAfter < minRetry || again.RequeueAfter > maxRetry*3/2 {
			t.Fatalf("tries again after %s", again.RequeueAfter)
		}
		w.reconcile()
		w.wantCalls(n+1, "revoke 5") // not before its time
		waited += again.RequeueAfter
		w.now = w.now.Add(again.RequeueAfter)
	}
	if waited < 10*time.Minute {
		t.Errorf("eight attempts within %s", waited)
	}
	w.wantCondition("Reachable", metav1.ConditionFalse, "Unreachable")
	w.wantCondition("Current", metav1.ConditionFalse, "Unreachable")
	w.reach = delivery.Applied
	w.reconcile()
	w.wantCondition("Reachable", metav1.ConditionTrue, "Unproven")
	w.wantCondition("Current", metav1.ConditionTrue, "Current")
}

// Nothing is stored that could be told: a host of a fresh cluster is met all the same.
func TestAHostThatWasNeverMetIsMetWithinMinutes(t *testing.T) {
	w := newWorld(t)
	again := w.reconcile()
	w.wantCalls(0, "")
	if again.RequeueAfter > meetWithin {
		t.Fatalf("met after %s", again.RequeueAfter)
	}
	w.now = w.now.Add(again.RequeueAfter)
	if again = w.reconcile(); again.RequeueAfter < 50*time.Minute {
		t.Fatalf("met again after %s", again.RequeueAfter)
	}
	w.wantCalls(1, "")
	w.wantCondition("Current", metav1.ConditionTrue, "Current")
}

// Who was met before is no news to a relay that starts: a fleet is not dialled within minutes.
func TestFirstLooksAreSpread(t *testing.T) {
	now := testkit.Now()
	met := func(ago time.Duration) v1alpha1.HostState {
		at := metav1.NewTime(now.Add(-ago))
		return v1alpha1.HostState{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid-1"}}},
			Status:     v1alpha1.HostStateStatus{ObservedGeneration: 1, LastContact: &at},
		}
	}
	another := met(time.Minute)
	another.OwnerReferences[0].UID = "uid-2"
	for what, c := range map[string]struct {
		state       v1alpha1.HostState
		first, last time.Duration // bounds of the earliest and of the latest of 500
	}{
		"never met":                {v1alpha1.HostState{}, 0, meetWithin},
		"another of its name was":  {another, 0, meetWithin},
		"met two hours ago":        {met(2 * time.Hour), 0, lookEvery},
		"met half an hour ago":     {met(30 * time.Minute), 30 * time.Minute, 36 * time.Minute},
		"met, by a clock of later": {met(-time.Hour), 0, meetWithin},
	} {
		t.Run(what, func(t *testing.T) {
			m := hostMetadata()
			m.SetUID("uid-1")
			m.SetGeneration(1)
			first, last := time.Duration(1<<62), time.Duration(0)
			for range 500 {
				h := &host{assumed: map[statement.Kind]int64{}, last: map[statement.Kind]answer{}}
				h.assume(&c.state, m, now)
				first, last = min(first, h.look.Sub(now)), max(last, h.look.Sub(now))
			}
			// a tenth of the range stays empty at either end once in 10^22
			if tenth := (c.last - c.first) / 10; first < c.first || first > c.first+tenth || last > c.last || last < c.last-tenth {
				t.Errorf("looks from %s to %s, want %s to %s", first, last, c.first, c.last)
			}
		})
	}
}

func TestWhyAProofCountsForNothing(t *testing.T) {
	stranger := testkit.NewSigner(t, "ed25519")
	w := newWorld(t)
	by, cluster := w.key, "prod-2"
	w.proves = func(q delivery.Question) []byte {
		f := proof.Facts{Cluster: cluster, RunUID: q.RunUID, Nonce: q.Nonce, BootID: "63b6dfb6-deb7-461a-8897-8f68ba802974", Time: w.now.Unix()}
		return append(f.Text(), testkit.Sign(t, by, proof.Namespace, f.Text())...)
	}
	proves := w.proves
	visited := func(reason, message string) {
		t.Helper()
		w.now = w.now.Add(80 * time.Minute)
		w.reconcile()
		w.wantCondition("Reachable", metav1.ConditionTrue, reason)
		if c := meta.FindStatusCondition(w.state().Status.Conditions, "Reachable"); !strings.HasSuffix(c.Message, message) {
			t.Fatalf("says %q, want %q at its end", c.Message, message)
		}
	}
	w.reconcile()
	visited("Unproven", `its proof does not hold: ProofFailed: the host belongs to cluster prod-2, not "prod-1"`)
	by, cluster = stranger, "prod-1"
	visited("Unproven", ", which is not a key of this host")
	w.proves = func(delivery.Question) []byte { return nil }
	visited("Unproven", "gave no proof")
	by, w.proves = w.key, proves
	visited("Answered", "the host answered")
}

// A certificate counts for the address that is dialled, and not for the name that its SSHHost happens to have:
// that may be the address of another host of the same authority.
func TestACertificateIsForTheAddressAlone(t *testing.T) {
	ca := testkit.NewSigner(t, "ed25519")
	for what, c := range map[string]struct{ principal, reason string }{
		"its address":                {"10.0.0.7", "Answered"},
		"the name of its SSHHost":    {"host-a", "Unproven"},
		"the address of a neighbour": {"10.0.0.8", "Unproven"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.pin("@cert-authority * " + ca.Line)
			w.proves = func(q delivery.Question) []byte {
				f := proof.Facts{Cluster: "prod-1", RunUID: q.RunUID, Nonce: q.Nonce, BootID: "63b6dfb6-deb7-461a-8897-8f68ba802974", Time: w.now.Unix()}
				certificate := testkit.Certify(t, ca, w.key.PublicKey(), []string{c.principal}, func(c *ssh.Certificate) {
					c.CertType, c.Permissions = ssh.HostCert, ssh.Permissions{}
				})
				return append(f.Text(), testkit.WithCertificate(t, testkit.Sign(t, w.key, proof.Namespace, f.Text()), certificate)...)
			}
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			w.wantCondition("Reachable", metav1.ConditionTrue, c.reason)
		})
	}
}

func TestHostsThatAreNotDialled(t *testing.T) {
	for what, c := range map[string]struct {
		change func(w *world)
		reason string // "" where nothing is written of it
	}{
		"Raw":              {func(w *world) { set(w, "Raw", "spec", "execMode") }, "RawRefused"},
		"another user":     {func(w *world) { set(w, "root", "spec", "user") }, "UserRefused"},
		"another command":  {func(w *world) { set(w, "/bin/sh", "spec", "shimCommand") }, "ShimCommandRefused"},
		"without a Secret": {func(w *world) { set(w, "none", "spec", "sshKeySecretRef", "name") }, "SecretNotFound"},
		"being deleted, and held by a finalizer": {func(w *world) {
			must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.host), w.host))
			w.host.SetFinalizers([]string{"example.com/holds"})
			must(w.t, w.client.Update(w.t.Context(), w.host))
			must(w.t, w.client.Delete(w.t.Context(), w.host))
		}, "HostNotFound"},
		"no policy": {func(w *world) {
			w.fault = decision.Errorf(decision.PolicyUnavailable, "none")
			w.c.Source.Stale()
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			c.change(w)
			w.reconcile()
			w.wantCalls(0, "")
			if c.reason != "" {
				w.wantCondition("Reachable", metav1.ConditionFalse, c.reason)
			}
		})
	}
}

func set(w *world, value string, path ...string) {
	w.t.Helper()
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.host), w.host))
	must(w.t, unstructured.SetNestedField(w.host.Object, value, path...))
	must(w.t, w.client.Update(w.t.Context(), w.host))
}

func TestAHostWithTheOtherShimIsLeftAloneForADay(t *testing.T) {
	w := newWorld(t)
	w.answer = func(int) delivery.Result { return delivery.StatementsUnsupported }
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	w.reconcile()
	w.wantCalls(1, "revoke 5")
	w.wantCondition("Current", metav1.ConditionFalse, "StatementsUnsupported")
	w.now = w.now.Add(80 * time.Minute)
	w.reconcile()
	w.wantCalls(2, "") // a look, without statements
	w.restart()        // by what its HostState tells
	w.reconcile()
	w.wantCalls(2, "")
	w.now = w.now.Add(80 * time.Minute)
	w.reconcile()
	w.wantCalls(3, "")
	w.restart() // which the relay that knew of it from there alone wrote again
	w.reconcile()
	w.wantCalls(3, "")
	w.wantCondition("Current", metav1.ConditionFalse, "StatementsUnsupported")
	must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(w.host), w.host))
	w.host.SetGeneration(2) // its object changed
	must(t, w.client.Update(t.Context(), w.host))
	w.reconcile()
	w.wantCalls(4, "revoke 5")
}

// The word of a HostState alone keeps nothing from a host before its run, and that of one from the future nothing at all.
func TestAHostStateThatClaimsTheOtherShimKeepsNothingBack(t *testing.T) {
	for what, c := range map[string]struct {
		ago   time.Duration
		calls int
	}{
		"a moment ago":    {0, 0},
		"ten years ahead": {-10 * 365 * 24 * time.Hour, 1},
	} {
		t.Run(what, func(t *testing.T) {
			contact := metav1.NewTime(testkit.Now().Add(-c.ago))
			w := newWorld(t, &v1alpha1.HostState{
				ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "host-a", OwnerReferences: []metav1.OwnerReference{{UID: "uid-1"}}},
				Status: v1alpha1.HostStateStatus{
					ObservedGeneration: 1, LastContact: &contact, Statements: []v1alpha1.HostStatementState{{Kind: "revoke", Result: "StatementsUnsupported", Sent: 5}},
				},
			})
			w.answer = func(int) delivery.Result { return delivery.Busy } // which tells nothing of it
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			if len(w.calls) != c.calls {
				t.Errorf("visited %d times, want %d", len(w.calls), c.calls)
			}
			if n := w.before(w.parsed()); n != 1 {
				t.Errorf("%d statements before the run, want 1", n)
			}
		})
	}
}

// A host that was set up with our shim meanwhile says so by its proof, and is told at its next turn.
func TestAHostThatProvesHasOurShim(t *testing.T) {
	m := newMemory()
	name, now := types.NamespacedName{Namespace: "pool", Name: "host-a"}, testkit.Now()
	words := []verify.Word{{Statement: &statement.Statement{Kind: statement.KindRevoke, Serial: 5}}}
	m.with(name, "uid-1", 1, func(h *host) {
		h.unsupported = now
		if got := h.pending(words, now); got != nil {
			t.Fatalf("told %v", got)
		}
		h.prove(&proof.Facts{}, now)
		if got := h.pending(words, now); len(got) != 1 {
			t.Fatalf("told %v", got)
		}
	})
}

func TestAFloodThatNobodySignedHidesNothing(t *testing.T) {
	w := newWorld(t)
	stranger := testkit.NewSigner(t, "ed25519")
	text := "hostwarrant-statement: v1 revoke\nserial 999\nissued 0\ncluster prod-1\nrevoke SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0\nend\n"
	signature := testkit.Sign(t, stranger, statement.Namespace, []byte(text))
	for n := range maxUnjudged + 100 {
		must(t, w.client.Create(t.Context(), &v1alpha1.HostStatement{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("junk-%d", n)}, Spec: v1alpha1.HostStatementSpec{Statement: text, Signatures: []string{signature}},
		}))
	}
	w.say("zz", statement.KindRevoke, 5, here, w.root)
	w.reconcile()
	w.wantCalls(1, "revoke 5")
}

func TestTallyTellsHowFarStatementsGot(t *testing.T) {
	w := newWorld(t)
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	w.say("nobody", statement.KindRevoke, 99, here, testkit.NewSigner(t, "ed25519"))
	w.reconcile()
	must(t, w.c.Tally(t.Context()))
	writes := w.writes
	must(t, w.c.Tally(t.Context()))
	if w.writes != writes {
		t.Error("a second count writes what the first one wrote")
	}
	read := func(name string) v1alpha1.HostStatementStatus {
		var h v1alpha1.HostStatement
		must(t, w.client.Get(t.Context(), types.NamespacedName{Name: name}, &h))
		return h.Status
	}
	if s := read("r5"); s.Kind != "revoke" || *s.Serial != 5 || s.Hosts != 1 || s.Applied != 1 || !meta.IsStatusConditionTrue(s.Conditions, "Verified") || !meta.IsStatusConditionTrue(s.Conditions, "Delivered") {
		t.Errorf("%+v", s)
	}
	if s := read("nobody"); !meta.IsStatusConditionFalse(s.Conditions, "Verified") || s.Hosts != 0 {
		t.Errorf("%+v", s)
	}
	for state, want := range map[string]float64{"current": 1, "behind": 0, "unreachable": 0, "unsupported": 0} {
		if got := w.metric("hostwarrant_hosts state=" + state); got != want {
			t.Errorf("%s: %v hosts, want %v", state, got, want)
		}
	}
	if got := w.metric("hostwarrant_statements_refused"); got != 1 {
		t.Errorf("%v refused", got)
	}
	w.say("r6", statement.KindRevoke, 6, here, w.root)
	w.reach = delivery.Unreachable
	w.reconcile()
	must(t, w.c.Tally(t.Context()))
	if s := read("r6"); s.Applied != 0 || !meta.IsStatusConditionFalse(s.Conditions, "Delivered") {
		t.Errorf("%+v", s)
	}
	if got := w.metric("hostwarrant_hosts state=unreachable"); got != 1 {
		t.Errorf("%v unreachable", got)
	}
}
