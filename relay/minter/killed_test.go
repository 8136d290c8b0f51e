package minter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// killed is what a minter panics with where it is killed: nothing of it runs after that.
type killed struct{}

// lifeUntil does a step and is killed before its n-th write; it says whether it lived through it.
func (w *world) lifeUntil(n int, name string) (lived bool) {
	w.fails = func(string, client.Object) error {
		if n--; n < 0 {
			panic(killed{})
		}
		return nil
	}
	defer func() {
		w.fails = nil
		if r := recover(); r != nil {
			if _, ours := r.(killed); !ours {
				panic(r)
			}
			lived = false
		}
	}()
	_, err := w.m.Reconcile(w.t.Context(), request(name))
	w.must(err)
	return true
}

// A minter that is killed before any of its writes leaves a run that the next one gives exactly one
// token, and once that is over nothing is left.
func TestAMinterMayBeKilledAtAnyStepOfGiving(t *testing.T) {
	steps := 0
	for done := false; !done; steps++ {
		t.Run(fmt.Sprintf("before write %d", steps), func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			done = w.lifeUntil(steps, "r")
			w.restart()
			w.reconcile("r")
			w.reconcile("r")
			w.wantToken("r")
			w.becomes("r", v1alpha1.ConditionSucceeded, isTrue, "Succeeded")
			w.reconcile("r")
			w.wantNothing()
		})
	}
	if steps < 6 { // two questions, finalizer, record, two Secrets, issued
		t.Fatalf("only %d steps", steps)
	}
}

func TestAMinterMayBeKilledAtAnyStepOfTaking(t *testing.T) {
	steps := 0
	for done := false; !done; steps++ {
		t.Run(fmt.Sprintf("before write %d", steps), func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			w.wantToken("r")
			w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "ScriptFailed")
			done = w.lifeUntil(steps, "r")
			w.restart()
			w.reconcile("r")
			w.reconcile("r")
			w.wantJoined("r", isFalse, token.RunEnded, "")
			w.wantNothing()
		})
	}
	if steps < 4 { // two Secrets, status, finalizer
		t.Fatalf("only %d steps", steps)
	}
}

// What was happening while no minter ran.
func TestAMinterThatStartsTakesOrphans(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"the run ended":       func(w *world) { w.becomes("r", v1alpha1.ConditionSucceeded, isTrue, "Succeeded") },
		"the run was deleted": func(w *world) { w.must(w.client.Delete(w.t.Context(), w.get("r"))) },
		"the node registered": func(w *world) { w.must(w.client.Create(w.t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-a"))) },
		"its time went by": func(w *world) {
			w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
			w.now = w.now.Add(token.Life)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			w.wantToken("r")
			change(w)
			w.restart()
			w.reconcile("r")
			w.wantNothing()
		})
	}
}

// A run that was sent goes on joining: its token is taken over.
func TestAMinterThatStartsLeavesRunningJoinsAlone(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
	w.restart()
	w.reconcile("r")
	if w.wantToken("r") != id {
		t.Fatal("another token")
	}
	w.now = w.now.Add(token.Life)
	w.reconcile("r")
	w.wantNothing()
}

// An approval moves neither the token's end nor its beginning, by which the approver tells requests of
// this token from those of an earlier one of its id.
func TestAnApprovedTokenKeepsItsTimesOverARestart(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	before, _ := w.m.Book.Holder(id)
	w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
	w.now = w.now.Add(5 * time.Minute)
	w.must(w.m.Approved(t.Context(), id, "Approved", "by proof"))
	w.restart()
	w.must(w.m.adopt(t.Context()))
	after, held := w.m.Book.Holder(id)
	if !held || !after.Expires.Truncate(time.Second).Equal(before.Expires.Truncate(time.Second)) {
		t.Errorf("held: %t, until %s and after the restart until %s", held, before.Expires, after.Expires)
	}
}

// The token of a node that has registered is gone, whatever its run still says: nobody takes it over.
func TestAMinterThatStartsTakesNothingOverOfNodesThatRegistered(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	w.must(w.m.Approved(t.Context(), id, "Approved", "by proof"))
	w.must(w.client.Create(t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-a")))
	w.reconcile("r")
	w.wantNothing()
	w.restart()
	w.must(w.m.adopt(t.Context()))
	if e, held := w.m.Book.Holder(id); held {
		t.Errorf("held again: %+v", e)
	}
}

// Whoever could write status past the admission policy points two runs at one token: it is one run's.
func TestTwoRunsThatClaimOneTokenAreOne(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0), w.run("s", "host-b", "pool-2", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	thief := w.get("s")
	thief.Finalizers = []string{token.Finalizer}
	w.must(w.client.Update(t.Context(), thief))
	w.change("s", func(run *v1alpha1.HostRun) { run.Status.TokenID = id })
	w.becomes("s", v1alpha1.ConditionJoined, isUnknown, token.Issued)
	w.restart()
	w.must(w.m.adopt(t.Context()))
	if e, ok := w.m.Book.Holder(id); !ok || w.m.Book.size() != 1 {
		t.Fatalf("held by %+v, %v; %d in all", e, ok, w.m.Book.size())
	}
}

// Whoever could write status past the admission policy names a token that is none of ours: it stays.
func TestARunThatNamesSomebodyElsesTokenTakesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.run("r", "host-a", "pool-1", 0)
	r.Finalizers, r.Status.TokenID = []string{token.Finalizer}, "abcdef"
	w.start(r)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: token.BootstrapName("abcdef")}}
	w.must(w.client.Create(t.Context(), theirs))
	w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "ScriptFailed")
	w.reconcile("r")
	w.wantJoined("r", isFalse, token.RunEnded, "")
	if left := w.secrets(); len(left) != 1 || hasFinalizer(w.get("r")) {
		t.Fatalf("left: %v, finalizers %v", left, w.get("r").Finalizers)
	}
}

// A minter that was paused, and whose place another took, goes on where it was. One token is left, the
// one that the run names, wherever the first was paused.
func TestAPausedMinterMintsNothingBesideTheNext(t *testing.T) {
	for _, pausedAt := range []string{"recorded", "created", "handed over"} {
		t.Run(pausedAt, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			old, next := w.m, w.another()
			old.onStep = func(step string) {
				if step == pausedAt {
					w.m = next
					w.reconcile("r")
					w.reconcile("r")
				}
			}
			_, err := old.Reconcile(t.Context(), request("r"))
			if err != nil && !strings.Contains(err.Error(), "already exists") {
				t.Fatal(err)
			}
			id := w.wantToken("r")
			for range 2 { // before it notices that it leads no more
				if _, err := old.Reconcile(t.Context(), request("r")); err != nil {
					t.Fatal(err)
				}
			}
			w.reconcile("r")
			if w.wantToken("r") != id {
				t.Fatal("the first took the second's token away")
			}
		})
	}
}

// The relay writes at the same moment: neither word is lost.
func TestAnApprovalSurvivesAWriteOfTheRelays(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	w.fails = func(verb string, _ client.Object) error {
		if verb == "status" {
			w.fails = nil
			w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
		}
		return nil
	}
	w.must(w.m.Approved(t.Context(), id, "Approved", ""))
	w.wantJoined("r", isTrue, "Approved", "")
	if run := w.get("r"); run.Status.TokenID != id || len(w.secrets()) != 2 || !wasSent(run) {
		t.Fatalf("token %s, Secrets %v, conditions %+v", run.Status.TokenID, w.secrets(), run.Status.Conditions)
	}
}
