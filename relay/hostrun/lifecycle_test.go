package hostrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

func TestWhatIsNotThereYetIsWaitedForAShortTime(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		absent func(w *world) client.Object
	}{
		"the host":        {"HostNotFound", func(w *world) client.Object { return w.host }},
		"the profile":     {"ProfileNotFound", func(w *world) client.Object { return w.profile }},
		"the host's keys": {"SecretNotFound", func(w *world) client.Object { return w.secret }},
	} {
		for end, comes := range map[string]bool{"comes": true, "does not come": false} {
			t.Run(name+" "+end, func(t *testing.T) {
				w := newWorld(t)
				w.start()
				o := c.absent(w)
				if err := w.client.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if w.reconcile().RequeueAfter == 0 {
						t.Fatal("does not come back")
					}
				}
				w.want(v1alpha1.ConditionVerified, isFalse, c.reason, "looked for until")
				w.want(v1alpha1.ConditionSucceeded, isUnknown, c.reason, "looked for until")
				if isFinished(w.get()) || w.writes != 1 {
					t.Fatalf("status %+v, written %d times", w.get().Status, w.writes)
				}
				if comes {
					o.SetResourceVersion("")
					if err := w.client.Create(t.Context(), o); err != nil {
						t.Fatal(err)
					}
					w.reconcile()
					w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
					return
				}
				w.now = w.now.Add(applyGrace)
				w.reconcile()
				w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, "")
				w.wantSent(0)
			})
		}
	}
}

// What is known of a run that its host may have is not overwritten by what keeps the relay from asking.
func TestAWaitLeavesWhatIsKnownOfASentRun(t *testing.T) {
	w := newWorld(t)
	w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
	w.start()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isUnknown, "Cut", "")
	if err := w.client.Delete(t.Context(), w.secret); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.want(v1alpha1.ConditionVerified, isFalse, "SecretNotFound", "looked for until")
	w.want(v1alpha1.ConditionSucceeded, isUnknown, "Cut", "")
}

// A run that waits for its host, or between two attempts, is ended without it.
func TestARunThatWasNotSentEndsWithoutItsHost(t *testing.T) {
	cases := map[string]struct {
		change func(w *world)
		after  time.Duration
		reason string
		text   string
	}{
		"cancelled":         {func(w *world) { w.run.Spec.Cancel = true }, 0, "Cancelled", "cancelled before it was sent"},
		"past its deadline": {func(w *world) { w.run.Spec.DeadlineSeconds = 60 }, time.Minute, "DeadlineExceeded", "no attempt came to an end"},
		"deleted": {func(w *world) {
			now := metav1.NewTime(w.now)
			w.run.DeletionTimestamp, w.run.Finalizers = &now, []string{"example.com/hold"}
		}, 0, "Cancelled", "deleted before it was sent"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			w.start()
			if c.after > 0 {
				if got := w.keepTime().RequeueAfter; got != c.after || isFinished(w.get()) {
					t.Fatalf("comes back after %s", got)
				}
				w.now = w.now.Add(c.after)
			}
			w.keepTime()
			w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, c.text)
			if told := w.told(); len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+c.reason) {
				t.Errorf("events %q", told)
			}
			w.reconcile()
			w.wantSent(0)
		})
	}
}

// Nobody but the host knows whether a run that was sent happened.
func TestARunThatWasSentIsNotEndedWithoutItsHost(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
	w.reconcile()
	run := w.get()
	run.Spec.Cancel = true
	if err := w.client.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(24 * time.Hour)
	if got := w.keepTime(); got.RequeueAfter != 0 || isFinished(w.get()) {
		t.Fatalf("comes back after %s, status %+v", got.RequeueAfter, w.get().Status)
	}
}

// What is cancelled while it is being sent is either ended or sent.
func TestTheTimekeeperEndsNothingThatIsBeingSent(t *testing.T) {
	w := newWorld(t)
	w.start()
	stale := w.get()
	w.courier.onDeliver = func() {
		stale.Spec.Cancel = true
		if err := w.times.endUnsent(t.Context(), stale); !apierrors.IsConflict(err) {
			t.Errorf("error %v", err)
		}
	}
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
}

func TestAnEndIsNotWrittenOverAnother(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.report, w.courier.unreached = failed(delivery.Unreachable, envelope.Unknown, envelope.Unknown), true
	w.courier.before = func() { // the host is silent, and meanwhile
		run := w.get()
		run.Spec.Cancel = true
		if err := w.client.Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		w.keepTime()
	}
	if got := w.reconcile(); got.RequeueAfter != 0 {
		t.Errorf("comes back after %s", got.RequeueAfter)
	}
	w.want(v1alpha1.ConditionSucceeded, isFalse, "Cancelled", "")
}

func TestAnotherRunUnderTheNameOfADeletedOneIsItsOwn(t *testing.T) {
	w := newWorld(t)
	w.run.UID = "uid-1"
	w.start()
	w.courier.onDeliver = func() {
		if err := w.client.Delete(t.Context(), w.get()); err != nil {
			t.Fatal(err)
		}
		again := w.run.DeepCopy()
		again.UID, again.ResourceVersion = "uid-2", ""
		if err := w.client.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.reconcile(); got.RequeueAfter != 0 {
		t.Errorf("comes back after %s", got.RequeueAfter)
	}
	if got := w.get(); got.UID != "uid-2" || len(got.Status.Conditions) != 0 {
		t.Fatalf("the new run has %+v", got.Status)
	}
	w.courier.onDeliver = nil
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	if a, b := w.courier.deliveries[0].Envelope.RunID, w.courier.deliveries[1].Envelope.RunID; a == b {
		t.Fatal("two runs under one run-id")
	}
}

// The turn was for another host.
func TestARunOfAnotherHostUnderTheSameNameHasNoTurn(t *testing.T) {
	w := newWorld(t)
	w.start()
	other := requestOf(w.run)
	other.Host = "host-b"
	if _, err := w.r.Reconcile(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.wantSent(0)
}

func TestARunThatIsDeletedWhileItRunsIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onDeliver = func() {
		if err := w.client.Delete(t.Context(), w.get()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.reconcile(); got.RequeueAfter != 0 {
		t.Errorf("comes back after %s", got.RequeueAfter)
	}
	w.reconcile()
	w.keepTime()
	w.wantSent(1)
}

// What the minter writes while the script runs stays.
func TestWhatTheMinterWroteStays(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onDeliver = func() {
		run := w.get()
		run.Status.TokenID, run.Status.Proof = "hw1234", &v1alpha1.HostRunProof{Nonce: strings.Repeat("0", 64)}
		meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionJoined, Status: isTrue, Reason: "Approved"})
		if err := w.client.Status().Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	w.want(v1alpha1.ConditionJoined, isTrue, "Approved", "")
	if got := w.get().Status; got.TokenID != "hw1234" || got.Proof == nil {
		t.Fatalf("status %+v", got)
	}
}

// An API server that is away for a while costs nothing of what the script printed.
func TestTheEndIsOfferedUntilTheAPIServerTakesIt(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onDeliver = func() { w.failWrites = 3 }
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	if got := w.get().Status.TranscriptTail; got != "hello\n" {
		t.Fatalf("output %q", got)
	}
}

func TestAStoppedRelayDoesNotGoOnWriting(t *testing.T) {
	w := newWorld(t)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	w.courier.onDeliver = func() { w.failWrites = 1000; cancel() }
	if _, err := w.r.Reconcile(ctx, requestOf(w.run)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}

// bubble gives a test time of its own.
func bubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func TestEventsTellTheTransitions(t *testing.T) {
	unknown := envelope.Unknown
	cases := map[string]struct {
		change func(w *world)
		want   []string
	}{
		"a run that succeeds":                     {func(*world) {}, []string{"Normal Succeeded"}},
		"a run that takes long":                   {func(w *world) { w.courier.onDeliver = func() { time.Sleep(sendingAfter + 1) } }, []string{"Normal Sending", "Normal Succeeded"}},
		"near miss: one that takes a moment less": {func(w *world) { w.courier.onDeliver = func() { time.Sleep(sendingAfter - 1) } }, []string{"Normal Succeeded"}},
		"a script that fails":                     {func(w *world) { w.courier.report = failed(delivery.ScriptFailed, 10, 2) }, []string{"Warning ScriptFailed"}},
		"a silent host": {func(w *world) {
			w.courier.report, w.courier.unreached = failed(delivery.Unreachable, unknown, unknown), true
		}, []string{"Normal Verified", "Warning Unreachable"}},
		"a refusal":        {func(w *world) { set(w.host, "Raw", "spec", "execMode") }, []string{"Warning RawRefused"}},
		"a missing host":   {func(w *world) { w.host = nil }, []string{"Warning HostNotFound"}},
		"a busy host":      {func(w *world) { w.courier.report = failed(delivery.Busy, 12, unknown) }, []string{"Warning Busy"}},
		"a missing policy": {func(w *world) { w.policy = nil }, []string{"Warning PolicyUnavailable"}},
	}
	for name, c := range cases {
		t.Run(name, bubble(func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			w.start()
			w.reconcile()
			time.Sleep(2 * sendingAfter) // what was not told by the end is never told
			var told []string
			for _, e := range w.told() {
				words := strings.Fields(e)
				told = append(told, strings.Join(words[:2], " "))
			}
			if !slices.Equal(told, c.want) {
				t.Errorf("events %q, want %q", told, c.want)
			}
			if writes := w.writes + len(told); writes > 6 {
				t.Errorf("%d API writes", writes)
			}
		}))
	}
}

func TestWhatIsNewsOfARun(t *testing.T) {
	w := newWorld(t)
	cases := map[string]struct {
		change func(run *v1alpha1.HostRun)
		runs   bool // for who takes it to its host
		times  bool // for who keeps its times
	}{
		"nothing":        {func(*v1alpha1.HostRun) {}, false, false},
		"cancel":         {func(run *v1alpha1.HostRun) { run.Generation++; run.Spec.Cancel = true }, true, true},
		"deletion":       {func(run *v1alpha1.HostRun) { now := metav1.NewTime(w.now); run.DeletionTimestamp = &now }, true, true},
		"our own status": {func(run *v1alpha1.HostRun) { run.Status.Attempts++ }, false, false},
		"it is sent":     {func(run *v1alpha1.HostRun) { markSending(run, message{}, w.now) }, false, true},
		"the token":      {func(run *v1alpha1.HostRun) { run.Status.TokenID = "hw1234" }, true, false},
		"what the minter says": {func(run *v1alpha1.HostRun) {
			setCondition(run, v1alpha1.ConditionJoined, isFalse, "NodeNameTaken", "", w.now)
		}, true, false},
	}
	for name, c := range cases {
		after := w.run.DeepCopy()
		c.change(after)
		e := event.UpdateEvent{ObjectOld: w.run, ObjectNew: after}
		if runs, times := (news{}).Update(e), (dates{}).Update(e); runs != c.runs || times != c.times {
			t.Errorf("%s: news to the runs %t, to the times %t", name, runs, times)
		}
	}
	over := w.run.DeepCopy()
	finish(over, isTrue, "Succeeded", "", w.now)
	if got := toRequest(t.Context(), over); len(got) != 0 {
		t.Errorf("a finished run waits for %v", got)
	}
	if got := toRequest(t.Context(), w.run); len(got) != 1 || got[0] != requestOf(w.run) {
		t.Errorf("a new run waits for %v", got)
	}
	if (news{}).Delete(event.DeleteEvent{}) || (dates{}).Delete(event.DeleteEvent{}) {
		t.Error("a deleted run waits")
	}
}

// probing makes the world's run a probe.
func (w *world) probing() {
	w.run.Spec = v1alpha1.HostRunSpec{HostRef: w.run.Spec.HostRef, Phase: v1alpha1.HostRunProbe}
	w.courier.report.ScriptExit = 0
}

func TestAProbeAsksTheShimAlone(t *testing.T) {
	w := newWorld(t)
	w.probing()
	w.profile = nil
	w.start()
	w.reconcile()
	w.want(v1alpha1.ConditionVerified, isTrue, "Verified", `SSHHost "host-a" may be asked`)
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "the host answered")
	e := w.courier.deliveries[0].Envelope
	if e.Phase != envelope.PhaseProbe || e.Script != nil || e.Params != nil || e.Sig != nil || !e.RunID.Valid() {
		t.Fatalf("sent %+v", e)
	}
	got := w.get().Status
	if got.TranscriptTail != "hello\n" || got.ScriptExitCode != nil || got.ScriptDigest != "" || got.Serial != nil || *got.ShimExitCode != 0 {
		t.Fatalf("status %+v", got)
	}
	if limit := w.courier.deliveries[0].Limits.Run; limit != runMargin {
		t.Errorf("waits %s", limit)
	}
}

// It changes nothing, so that nobody needs to ask whether it happened.
func TestAProbeThatWasCutIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.probing()
	w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
	w.start()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isUnknown, "Cut", "")
	w.restart()
	w.courier.report = succeeded()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	w.wantSent(2)
	if len(w.courier.recalls) != 0 {
		t.Error("the host was asked about a probe")
	}
}

func TestAProbeIsJudgedAsARunIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		reason string
	}{
		"a Raw host":                          {func(w *world) { set(w.host, "Raw", "spec", "execMode") }, "RawRefused"},
		"a host under deletion":               {func(w *world) { deleted(w.host); w.now = w.now.Add(applyGrace) }, "HostNotFound"},
		"a claimed host":                      {func(w *world) { set(w.host, map[string]any{"name": "claim-1"}, "status", "claimRef") }, "HostClaimed"},
		"a class that is not the namespace's": {func(w *world) { w.host.SetLabels(map[string]string{object.HostClassLabel: "gpu"}) }, "HostClassRefused"},
		"no pinned key":                       {func(w *world) { delete(w.secret.Data, "knownHost") }, "HostKeyNotPinned"},
		"a profile, which it does not take":   {func(w *world) { w.run.Spec.ProfileRef.Name = "tls-bootstrap" }, "Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.probing()
			c.change(w)
			w.start()
			w.reconcile()
			w.wantSent(0)
			w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, "")
		})
	}
}

// Runs of another node's name are nothing to a run, one of its own name is, wherever it stands among them.
func TestARunIsJudgedBesideTheOthersOfItsNode(t *testing.T) {
	for same, sent := range map[string]int{"": 1, "run-0": 0, "run-5": 0, "run-9": 0} {
		w := newWorld(t)
		for n := range 10 {
			o := otherRun(w, isUnknown)
			o.Name = fmt.Sprint("run-", n)
			if o.Name != same {
				o.Spec.NodeName = fmt.Sprint("pool-x", n)
			}
			w.more = append(w.more, o)
		}
		w.run.Name = "run-a"
		w.start()
		w.reconcile()
		w.wantSent(sent)
		if sent == 0 {
			w.want(v1alpha1.ConditionSucceeded, isFalse, "NodeNameTaken", same)
		}
	}
}
