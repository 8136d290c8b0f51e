package hostrun

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// A run has its slot while its host may be talked to, and its host until what came of it is written.
func TestARunGivesItsSlotBackBeforeItsEndIsWritten(t *testing.T) {
	unknown := envelope.Unknown
	cases := map[string]struct {
		prepare func(w *world)
		slots   []int // in use at each step
	}{
		"it is sent": {func(*world) {}, []int{1, 1, 0}},
		"it was cut, and the host remembers": {func(w *world) {
			w.cutOnce()
			w.courier.memory, w.courier.recalled = delivery.Ended, failed(delivery.Succeeded, 0, 0)
		}, []int{0}},
		"it was cut, and the host never saw it": {func(w *world) {
			w.cutOnce()
			w.courier.memory, w.courier.recalled = delivery.NeverSeen, failed(delivery.Cut, unknown, unknown)
		}, []int{1, 1, 0}},
		"it is refused": {func(w *world) { w.setRefused() }, []int{0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			c.prepare(w)
			line := NewLine(1)
			w.r.Slots = line
			line.Add(requestOf(w.run))
			request, _ := line.Get()
			next := requestOf(w.run)
			next.Name = "next-of-the-host"
			line.Add(next)
			var slots []int
			w.onWrite = func() {
				slots = append(slots, line.InUse())
				if line.Len() != 1 {
					t.Error("the host was given to its next run while this one's status was written")
				}
			}
			w.courier.onDeliver = func() { slots = append(slots, line.InUse()) }
			if _, err := w.r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(slots, c.slots) {
				t.Fatalf("slots in use at each step: %v, want %v", slots, c.slots)
			}
			line.Done(request)
			if line.Len() != 0 || line.InUse() != 1 {
				t.Fatalf("%d wait, %d slots in use", line.Len(), line.InUse())
			}
		})
	}
}

// cutOnce sends the run, and loses the connection.
func (w *world) cutOnce() {
	w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
	w.reconcile()
	w.courier.report = succeeded()
}

// setRefused makes the stored script another than the signed one.
func (w *world) setRefused() {
	stored := w.profile.DeepCopy()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		w.t.Fatal(err)
	}
	set(stored, "id\n", "spec", "scripts", "join")
	if err := w.client.Update(w.t.Context(), stored); err != nil {
		w.t.Fatal(err)
	}
}
