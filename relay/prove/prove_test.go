package prove

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const signatureText = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"

// fakeTargets is a fake: one host, or a refusal.
type fakeTargets struct {
	target  transport.Target
	refused *judge.Refusal
}

func (f fakeTargets) Target(context.Context, *v1alpha1.HostRun) (transport.Target, *judge.Refusal, error) {
	return f.target, f.refused, nil
}

// world is a run that is asked for a proof, and its host.
type world struct {
	p       *Prover
	run     *v1alpha1.HostRun
	client  client.Client
	server  *fakesshd.Server
	events  *events.FakeRecorder
	targets *fakeTargets
}

func newWorld(t *testing.T, change func(*v1alpha1.HostRun), handler fakesshd.Handler) *world {
	t.Helper()
	login, pem := fakesshd.Key(t)
	host, _ := fakesshd.Key(t)
	key, err := transport.ParseLoginKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := transport.ParsePin(fakesshd.PinText(host))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{server: fakesshd.Start(t, login.PublicKey(), handler, fakesshd.Options{}, host), events: events.NewFakeRecorder(10)}
	w.targets = &fakeTargets{target: transport.Target{Address: w.server.Addr, User: "kpssh", Login: key, Pin: pin, Command: "/opt/kpssh/kpssh-shim"}}
	w.run = &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "run-1", UID: "01234567-89ab-cdef-0123-456789abcdef"},
		Status: v1alpha1.HostRunStatus{
			TokenID: "hwab12", Proof: &v1alpha1.HostRunProof{Nonce: strings.Repeat("ab", 32)}, TranscriptTail: "kept",
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionUnknown, Reason: token.Issued, LastTransitionTime: metav1.NewTime(testkit.Now())}},
		},
	}
	if change != nil {
		change(w.run)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(w.run).WithObjects(w.run).Build()
	w.p = &Prover{Client: w.client, Reader: w.client, Targets: w.targets, Limits: transport.DefaultLimits(), Events: w.events, Now: testkit.Now}
	return w
}

func (w *world) reconcile(t *testing.T) (ctrl.Result, *v1alpha1.HostRun) {
	t.Helper()
	key := client.ObjectKeyFromObject(w.run)
	result, err := w.p.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	var run v1alpha1.HostRun
	if err := w.client.Get(t.Context(), key, &run); err != nil {
		t.Fatal(err)
	}
	return result, &run
}

func says(code int, text string) fakesshd.Handler {
	return func(s *fakesshd.Session) int {
		if _, err := io.Copy(io.Discard, s.Stdin); err != nil {
			return 1
		}
		if _, err := io.WriteString(s.Stdout, text); err != nil {
			return 1
		}
		return code
	}
}

// TestTheRelayBringsTheAnswer: question and run go to the host, its text and signature to the run, and nothing else changes.
func TestTheRelayBringsTheAnswer(t *testing.T) {
	asked := make(chan string, 1)
	w := newWorld(t, nil, func(s *fakesshd.Session) int {
		text, err := io.ReadAll(s.Stdin)
		if err != nil {
			t.Error(err)
		}
		asked <- string(text)
		return says(0, "facts\nend\n"+signatureText)(s)
	})
	result, run := w.reconcile(t)
	if result != (ctrl.Result{}) || run.Status.Proof.Text != "facts\nend\n" || run.Status.Proof.Signature != signatureText || run.Status.Proof.Nonce != w.run.Status.Proof.Nonce {
		t.Errorf("%+v, %+v", result, run.Status.Proof)
	}
	if run.Status.TranscriptTail != "kept" || len(run.Status.Conditions) != 1 || run.Status.TokenID != "hwab12" {
		t.Errorf("the status became %+v", run.Status)
	}
	e, err := envelope.Decode([]byte(<-asked))
	if err != nil {
		t.Fatal(err)
	}
	params, err := envelope.DecodeParams(e.Params)
	if err != nil || e.Phase != envelope.PhaseProve || len(params) != 2 || params["KPSSH_NONCE"] != run.Status.Proof.Nonce || params["KPSSH_RUN_UID"] != string(run.UID) {
		t.Errorf("asked %+v with %v: %v", e, params, err)
	}
	if w.reconcile(t); w.server.Sessions() != 1 {
		t.Error("asked once more")
	}
}

// TestWhatIsNoAnswerIsAskedForAgain: and none of it is written.
func TestWhatIsNoAnswerIsAskedForAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		handler fakesshd.Handler
		refused *judge.Refusal
		says    string
	}{
		"a host that refuses":       {says(23, "facts\nend\n"+signatureText), nil, "exit code 23"},
		"a shim that knows no such": {says(5, ""), nil, "exit code 5"},
		"no signature":              {says(0, "facts\nend\n"), nil, "is no proof"},
		"nothing":                   {says(0, ""), nil, "is no proof"},
		"long facts":                {says(0, strings.Repeat("x", proof.MaxBytes)+"\n"+signatureText), nil, "is no proof"},
		"a long signature":          {says(0, "end\n"+signatureText+strings.Repeat("x", sshsig.MaxArmored)), nil, "is no proof"},
		"output without end":        {says(0, strings.Repeat("x", 1<<20)), nil, "more output than is taken"},
		"a cut":                     {func(s *fakesshd.Session) int { s.Cut(); return 0 }, nil, "Cut"},
		"a host that is refused":    {says(0, "end\n"+signatureText), judge.Refuse("RawRefused", "not Verified"), "RawRefused"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, tt.handler)
			w.targets.refused = tt.refused
			result, run := w.reconcile(t)
			if result.RequeueAfter < again || result.RequeueAfter > 2*again || run.Status.Proof.Text != "" || run.Status.Proof.Signature != "" {
				t.Errorf("%+v, %+v", result, run.Status.Proof)
			}
			if e := <-w.events.Events; !strings.HasPrefix(e, "Warning NoProof ") || !strings.Contains(e, tt.says) {
				t.Errorf("the event is %q, want one that says %q", e, tt.says)
			}
			if tt.refused != nil && w.server.Connections() > 0 {
				t.Error("the host was dialled")
			}
		})
	}
}

// TestNobodyIsAskedInVain: without a question, with an answer, and when the token is not there or over.
func TestNobodyIsAskedInVain(t *testing.T) {
	joined := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.HostRun) {
		return func(run *v1alpha1.HostRun) {
			run.Status.Conditions[0].Status, run.Status.Conditions[0].Reason = status, reason
		}
	}
	for name, change := range map[string]func(*v1alpha1.HostRun){
		"no question":      func(run *v1alpha1.HostRun) { run.Status.Proof = nil },
		"no nonce":         func(run *v1alpha1.HostRun) { run.Status.Proof.Nonce = "" },
		"an answer":        func(run *v1alpha1.HostRun) { run.Status.Proof.Text, run.Status.Proof.Signature = "x", "y" },
		"no token":         func(run *v1alpha1.HostRun) { run.Status.Conditions = nil },
		"a recorded token": joined(metav1.ConditionUnknown, token.Recorded),
		"an approved one":  joined(metav1.ConditionTrue, "Approved"),
		"a denied one":     joined(metav1.ConditionFalse, "CSRMismatch"),
		"one that is over": func(run *v1alpha1.HostRun) {
			run.Status.Conditions[0].LastTransitionTime = metav1.NewTime(testkit.Now().Add(-token.Life))
		},
		"a deleted run": func(run *v1alpha1.HostRun) {
			run.DeletionTimestamp, run.Finalizers = new(metav1.NewTime(testkit.Now())), []string{token.Finalizer}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change, says(0, "end\n"+signatureText))
			if result, _ := w.reconcile(t); result != (ctrl.Result{}) || w.server.Connections() > 0 {
				t.Errorf("%+v after %d connections", result, w.server.Connections())
			}
		})
	}
	w := newWorld(t, nil, says(0, ""))
	w.run.Name = "gone"
	if _, err := w.p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.run)}); err != nil {
		t.Error(err)
	}
}

// TestAnotherHostIsNotAsked: one that shows a key which is not pinned gets no question.
func TestAnotherHostIsNotAsked(t *testing.T) {
	w := newWorld(t, nil, says(0, "end\n"+signatureText))
	other, _ := fakesshd.Key(t)
	pin, err := transport.ParsePin(ssh.MarshalAuthorizedKey(other.PublicKey()))
	if err != nil {
		t.Fatal(err)
	}
	w.targets.target.Pin = pin
	if _, run := w.reconcile(t); run.Status.Proof.Text != "" || w.server.Sessions() > 0 {
		t.Errorf("%+v", run.Status.Proof)
	}
	if again > time.Minute {
		t.Error("a host that was restarting is asked too late")
	}
}
