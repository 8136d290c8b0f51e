package hostrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

const declaresBootstrap = "KPSSH_BOOTSTRAP_TOKEN required secret re [a-z0-9]{6}[.][a-z0-9]{16}"

// joins is a world whose run takes a token, and the Secret that hands it over.
func joins(t *testing.T) (*world, token.Token, *corev1.Secret) {
	t.Helper()
	w := newWorld(t)
	w.declare(declaresDNS, declaresBootstrap)
	w.run.UID = "uid-1"
	one := token.New()
	return w, one, one.Handover(w.run, w.now.Add(token.Life))
}

// says is what the minter writes.
func (w *world) says(id string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	run := w.get()
	run.Status.TokenID = id
	setCondition(run, v1alpha1.ConditionJoined, status, reason, "as the minter says", w.now)
	if err := w.client.Status().Update(w.t.Context(), run); err != nil {
		w.t.Fatal(err)
	}
}

func TestARunWaitsForItsTokenAndTakesItAlong(t *testing.T) {
	w, one, secret := joins(t)
	w.more = append(w.more, secret)
	w.start()
	for range 2 {
		if after := w.reconcile().RequeueAfter; after != maxDelay {
			t.Fatalf("looks again after %s: the minter's word is news", after)
		}
	}
	w.wantSent(0)
	w.want(v1alpha1.ConditionVerified, isTrue, "Verified", "")
	w.want(v1alpha1.ConditionDelivered, isFalse, token.Pending, "hostwarrant-minter")
	w.want(v1alpha1.ConditionSucceeded, isUnknown, token.Pending, "")
	if status := w.get().Status; w.writes != 1 || status.Attempts != 0 {
		t.Fatalf("%d writes, %d attempts, for nothing new", w.writes, status.Attempts)
	}
	w.says(one.ID, isUnknown, token.Issued)
	w.reconcile()
	w.wantSent(1)
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	// What docs/spec/join.md says that a join costs, of the relay's part; without Sending, since this one is short.
	if told := w.told(); w.writes != 3+1 || len(told) != 3 { // one write was the minter's
		t.Errorf("%d writes of the status, and the events %q", w.writes, told)
	}
	o := w.courier.deliveries[0]
	params, err := envelope.DecodeParams(o.Envelope.Params)
	if err != nil || params["KPSSH_BOOTSTRAP_TOKEN"] != one.Value() {
		t.Fatalf("sent %d params, %v", len(params), err)
	}
	if diff := cmp.Diff([]string{one.Value()}, o.Secrets); diff != "" {
		t.Errorf("what must not show: %s", diff)
	}
	if strings.Contains(fmt.Sprint(w.get()), strings.TrimPrefix(one.Value(), one.ID+".")) {
		t.Error("the run holds the token")
	}
}

func TestWithoutATokenOfItsOwnNothingIsSent(t *testing.T) {
	cases := map[string]func(w *world, one token.Token, secret *corev1.Secret){
		"none was handed over": func(w *world, one token.Token, _ *corev1.Secret) {
			w.more = nil
			w.start()
			w.reconcile()
			w.says(one.ID, isUnknown, token.Issued)
		},
		"it is being made": func(w *world, one token.Token, _ *corev1.Secret) {
			w.start()
			w.reconcile()
			w.says(one.ID, isUnknown, token.Recorded)
		},
		"it was taken away": func(w *world, one token.Token, _ *corev1.Secret) {
			w.start()
			w.reconcile()
			w.says(one.ID, isUnknown, token.Expired)
		},
		"its time is over": func(w *world, one token.Token, _ *corev1.Secret) {
			w.start()
			w.reconcile()
			w.says(one.ID, isUnknown, token.Issued)
			w.now = w.now.Add(token.Life)
		},
		"it is of an earlier attempt": func(w *world, _ token.Token, _ *corev1.Secret) {
			w.start()
			w.reconcile()
			w.says(token.New().ID, isUnknown, token.Issued)
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			w, one, secret := joins(t)
			w.more = append(w.more, secret)
			prepare(w, one, secret)
			w.reconcile()
			w.wantSent(0)
			w.want(v1alpha1.ConditionDelivered, isFalse, token.Pending, "")
		})
	}
}

func TestWhatTheMinterRefusesEnds(t *testing.T) {
	for _, reason := range []string{token.AutoApproverBound, "NodeNameTaken", "CSRMismatch", token.RunEnded} {
		w, one, secret := joins(t)
		w.more = append(w.more, secret)
		w.start()
		w.reconcile()
		w.says(one.ID, isFalse, reason)
		w.reconcile()
		w.wantSent(0)
		w.want(v1alpha1.ConditionSucceeded, isFalse, reason, "as the minter says")
	}
}

func TestARunThatNobodyGivesATokenIsGivenUp(t *testing.T) {
	w, _, _ := joins(t)
	w.start()
	w.reconcile()
	w.now = w.now.Add(time.Hour)
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isFalse, "DeadlineExceeded", token.Pending)
}

// Its near misses: other phases, and scripts that ask for none, wait for nothing.
func TestOnlyAJoinWhoseScriptAsksWaits(t *testing.T) {
	w := newWorld(t)
	w.declare(declaresDNS)
	w.start()
	w.reconcile()
	w.wantSent(1)
	w = newWorld(t)
	w.start()
	w.reconcile()
	w.wantSent(1)
}

// A run takes no other run's token along.
func TestASecretWithATokenIsNoJoinSecret(t *testing.T) {
	w := newWorld(t)
	w.declare(declaresDNS, "KPSSH_SECRET_TOKEN required secret type text", "KPSSH_SECRET_EXPIRATION required secret type text")
	other := w.run.DeepCopy()
	other.UID = "uid-2"
	secret := token.New().Handover(other, w.now.Add(token.Life))
	w.run.Spec.SecretRef = &v1alpha1.ObjectRef{Name: secret.Name}
	w.more = append(w.more, secret)
	w.start()
	w.now = w.now.Add(applyGrace)
	w.reconcile()
	w.wantSent(0)
	w.want(v1alpha1.ConditionSucceeded, isFalse, "SecretNotFound", "holds the token of a run")
}
