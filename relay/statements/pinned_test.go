package statements

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// list stores what is known of the keys of host-a past the relay.
func (w *world) list(text string) {
	w.t.Helper()
	must(w.t, w.client.Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hostwarrant-system", Name: "hostwarrant-host-keys"},
		Data:       map[string]string{"pool.host-a": text + "\n"},
	}))
}

// pin has the Secret of the host name these keys.
func (w *world) pin(lines string) {
	w.t.Helper()
	var secret corev1.Secret
	must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "pool", Name: "host-a-ssh"}, &secret))
	secret.Data["knownHost"] = []byte(lines + "\n")
	must(w.t, w.client.Update(w.t.Context(), &secret))
}

// Whoever writes the host's Secret would have a machine of his own take each statement, and say so.
func TestAPinThatContradictsWhatIsKnownIsNotVisited(t *testing.T) {
	other := testkit.NewSigner(t, "ed25519")
	for what, c := range map[string]struct {
		listed func(w *world) string
		calls  int
		reason string
	}{
		"its key":     {func(w *world) string { return w.key.Line }, 1, "Unproven"},
		"another key": {func(*world) string { return other.Line }, 0, "HostKeyNotPinned"},
		"no key":      {func(*world) string { return "ssh-ed25519 ?" }, 0, "Malformed"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.list(c.listed(w))
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			if len(w.calls) != c.calls {
				t.Errorf("called %d times, want %d", len(w.calls), c.calls)
			}
			status := metav1.ConditionFalse
			if c.calls > 0 {
				status = metav1.ConditionTrue
			}
			w.wantCondition("Reachable", status, c.reason)
		})
	}
}

// Nobody is dialled while nobody knows whether its pin is disputed.
func TestNobodyIsVisitedWhileListedKeysAreNotRead(t *testing.T) {
	w, fault := newWorld(t), errors.New("the API server does not answer")
	stored, ok := w.client.(client.WithWatch)
	if !ok {
		t.Fatalf("the world's client is a %T", w.client)
	}
	w.c.Reader = interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.ConfigMap); ok {
				return fault
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	_, err := w.c.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pool", Name: "host-a"}})
	if !errors.Is(err, fault) {
		t.Errorf("%v, want %v", err, fault)
	}
	w.wantCalls(0, "")
}

// What answered under other keys was another machine: what it took, or refused, the host did not.
func TestOtherPinnedKeysAreAnotherMachine(t *testing.T) {
	stranger := testkit.NewSigner(t, "ed25519")
	for what, c := range map[string]struct {
		pin    func(w *world) string
		answer delivery.Result
		want   int
	}{
		"the same key":             {func(w *world) string { return w.key.Line }, delivery.Applied, 0},
		"another key took it":      {func(*world) string { return stranger.Line }, delivery.Applied, 1},
		"another key refused it":   {func(*world) string { return stranger.Line }, delivery.StatementRejected, 1},
		"another key has no shim":  {func(*world) string { return stranger.Line }, delivery.StatementsUnsupported, 1},
		"an authority took it":     {func(*world) string { return "@cert-authority * " + stranger.Line }, delivery.Applied, 1},
		"its key as an authority":  {func(w *world) string { return "@cert-authority * " + w.key.Line }, delivery.Applied, 1},
		"a key beside the host's":  {func(w *world) string { return w.key.Line + "\n" + stranger.Line }, delivery.Applied, 1},
		"the same key refused it":  {func(w *world) string { return w.key.Line }, delivery.StatementRejected, 0},
		"the same key has no shim": {func(w *world) string { return w.key.Line }, delivery.StatementsUnsupported, 0},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.answer = func(int) delivery.Result { return c.answer }
			w.pin(c.pin(w))
			w.say("r5", statement.KindRevoke, 5, here, w.root)
			w.reconcile()
			w.wantCalls(1, "revoke 5")
			w.pin(w.key.Line)
			if n := w.before(w.parsed()); n != c.want { // with the host's key
				t.Errorf("%d statements before the next run, want %d", n, c.want)
			}
			w.reconcile()
			w.wantCalls(1+c.want, "revoke 5") // and a visit, at once
		})
	}
}

func TestThePinsOrderIsNoOtherPin(t *testing.T) {
	w, second := newWorld(t), testkit.NewSigner(t, "ed25519")
	w.pin(w.key.Line + "\n" + second.Line)
	w.say("r5", statement.KindRevoke, 5, here, w.root)
	w.reconcile()
	w.pin(second.Line + "\n" + w.key.Line)
	w.now = w.now.Add(80 * time.Minute)
	w.reconcile()
	w.wantCalls(2, "")
}
