//go:build linux

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// SIGKILL reaches the relay at four moments of four runs at once. The next relay takes each to its end; none runs twice,
// and none is lost.
func TestARelayThatIsKilledAtEachMoment(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "killed", counted)
	w.Profile(t, "killed-later", counted+waiting+"exit 5\n")
	before, between, running, after := w.at(t, "k-before"), w.at(t, "k-between"), w.at(t, "k-running"), w.at(t, "k-after")

	before.signal(t, "STOP") // its kernel takes the connection
	w.Run(t, "k-before", "k-before", "killed", nil)
	testkit.Eventually(t, stepLimit, "the relay to dial", func() bool { return before.connections(t) > 0 })
	w.Run(t, "k-running", "k-running", "killed-later", nil)
	w.begins(t, "k-running", running)
	ended := w.gate.Hold(func(r *v1alpha1.HostRun) bool { return r.Name == "k-after" && courier.IsOver(r) })
	w.Run(t, "k-after", "k-after", "killed", nil)
	arrives(t, "the end of k-after", ended)
	intent := w.gate.Hold(func(r *v1alpha1.HostRun) bool { return r.Name == "k-between" && isBeingSent(r) })
	w.Run(t, "k-between", "k-between", "killed", nil)
	arrives(t, "the record of k-between", intent)

	must(t, w.Programs.Relay.Pause())
	intent.Release()
	w.Until(t, "k-between", stepLimit, isBeingSent) // stored, and the relay does not know it yet
	must(t, w.Programs.Relay.Kill())
	ended.Release()
	if got, want := fmt.Sprint(before.ran(t), between.ran(t), running.ran(t), after.ran(t)), "0 0 1 1"; got != want {
		t.Fatalf("when the relay was killed the scripts had run %s times, want %s", got, want)
	}
	if courier.IsOver(w.Read(t, "k-after")) {
		t.Fatal("the end of k-after was written: the relay was killed too late")
	}

	before.signal(t, "CONT")
	w.startRelay(t)
	running.release(t)
	w.Ended(t, "k-before", "Succeeded", 0, 0)
	w.Ended(t, "k-between", "Succeeded", 0, 0)
	for name, r := range map[string]*v1alpha1.HostRun{"k-running": w.Ended(t, "k-running", "ScriptFailed", 10, 5), "k-after": w.Ended(t, "k-after", "Succeeded", 0, 0)} {
		messageHolds(t, r, v1alpha1.ConditionSucceeded, "as the host recorded")
		if r.Status.Attempts != 1 || r.Status.Trailer != v1alpha1.TrailerNone {
			t.Errorf("%s: %+v", name, r.Status)
		}
	}
	for _, h := range []target{before, between, running, after} {
		h.once(t)
	}
}

// Three relays of which two were told not to elect a leader take the same runs to the same hosts: the status's version lets
// one of them send, and where one asks before the other's envelope has arrived, the host knows the run-id.
func TestRelaysThatAllBelieveToLead(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "counted", "echo \"$KPSSH_VAR_run\" >>"+ranFile+"\n", "KPSSH_VAR_run required type dns1123")
	const eachHost = 3
	var hosts []target
	for n := range 3 {
		hosts = append(hosts, w.at(t, fmt.Sprintf("many-%d", n)))
	}
	others := []*product.Program{w.another(t, "relay-b", "--leader-elect=false"), w.another(t, "relay-c", "--leader-elect=false")}
	for n := range eachHost {
		for _, h := range hosts {
			name := fmt.Sprintf("%s-%d", h.Name, n)
			w.Run(t, name, h.Name, "counted", func(r *v1alpha1.HostRun) {
				r.Spec.Vars = map[string]v1alpha1.HostRunVar{"run": v1alpha1.HostRunVar(name)}
			})
		}
	}
	for _, h := range hosts {
		for n := range eachHost {
			name := fmt.Sprintf("%s-%d", h.Name, n)
			w.Ended(t, name, "Succeeded", 0, 0)
			if times := strings.Count(h.read(t, ranFile), name+"\n"); times != 1 {
				t.Errorf("%s ran %d times", name, times)
			}
		}
	}
	for _, other := range others {
		must(t, other.Stop())
	}
}

// A relay sleeps after it has written that it sends, and another sleeps while it waits for the script. A second one ends
// both runs. When the first wakes up it goes on where it was: the host answers by its record, and what is written stays.
func TestARelayThatWakesUpLate(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "late", counted)
	w.Profile(t, "late-waiting", counted+waiting)
	sends, waits := w.at(t, "late-sends"), w.at(t, "late-waits")
	must(t, w.Programs.Relay.Stop())
	sleeper := w.another(t, "relay-sleeper", "--leader-elect=false")

	w.Run(t, "late-waits", "late-waits", "late-waiting", nil)
	w.begins(t, "late-waits", waits)
	intent := w.gate.Hold(func(r *v1alpha1.HostRun) bool { return r.Name == "late-sends" && isBeingSent(r) })
	w.Run(t, "late-sends", "late-sends", "late", nil)
	arrives(t, "the record of late-sends", intent)
	must(t, sleeper.Pause())
	intent.Release()
	w.Until(t, "late-sends", stepLimit, isBeingSent)

	w.startRelay(t)
	waits.release(t)
	told := map[string]string{}
	for name, h := range map[string]target{"late-sends": sends, "late-waits": waits} {
		told[name] = w.Ended(t, name, "Succeeded", 0, 0).ResourceVersion
		h.once(t)
	}
	if n := sends.connections(t); n == 0 {
		t.Fatal("the sleeper has no connection any more: nothing is shown")
	}
	must(t, sleeper.Resume())
	testkit.Eventually(t, stepLimit, "the late relay to be through", func() bool { return sends.connections(t)+waits.connections(t) == 0 })
	must(t, sleeper.Stop()) // which lets it finish what it does
	for name, h := range map[string]target{"late-sends": sends, "late-waits": waits} {
		if r := w.Read(t, name); r.ResourceVersion != told[name] || !courier.IsOver(r) {
			t.Errorf("the late relay wrote %s: %+v", name, r.Status)
		}
		h.once(t)
	}
}

// A leader is stopped until another one has its lease. Then it goes on, and ends by itself.
func TestALeaderThatIsPaused(t *testing.T) {
	w := newWorld(t)
	w.Profile(t, "paused", counted+waiting+"exit 5\n")
	h := w.at(t, "paused")
	leader := w.Programs.Relay
	standby, err := w.Product.StartRelayAs(t.Context(), "relay-standby")
	must(t, err)
	w.Programs.Relay = standby
	w.Run(t, "paused", "paused", "paused", nil)
	w.begins(t, "paused", h)
	must(t, leader.Pause())
	w.Until(t, "paused", stepLimit, func(r *v1alpha1.HostRun) bool {
		return strings.Contains(courier.ConditionOf(r, v1alpha1.ConditionSucceeded).Message, "the script is running on the host")
	})
	h.release(t)
	told := w.Ended(t, "paused", "ScriptFailed", 10, 5)
	must(t, leader.Resume())
	select {
	case <-leader.Done():
	case <-time.After(stepLimit):
		t.Fatalf("the leader of before goes on; its log:\n%s", leader.Tail(20))
	}
	if log := leader.Tail(20); !strings.Contains(log, "leader election lost") {
		t.Errorf("the leader of before says:\n%s", log)
	}
	if r := w.Read(t, "paused"); r.ResourceVersion != told.ResourceVersion {
		t.Errorf("the leader of before wrote %+v over %+v", r.Status, told.Status)
	}
	h.once(t)
}

// The API server hangs for a minute: connections to it stay, and nothing is answered. One script ends meanwhile, one
// afterwards, and one run has not been sent.
func TestTheAPIServerIsAwayForAMinute(t *testing.T) {
	w := newWorld(t)
	api := w.ControlPlane.APIServer()
	if api == nil {
		t.Skip("the cluster is the user's own")
	}
	w.Profile(t, "away", counted+waiting+"exit 5\n")
	meanwhile, afterwards, unsent := w.at(t, "away-meanwhile"), w.at(t, "away-afterwards"), w.at(t, "away-unsent")
	unsent.signal(t, "STOP")
	for _, h := range []target{meanwhile, afterwards, unsent} {
		w.Run(t, h.Name, h.Name, "away", nil)
	}
	w.begins(t, meanwhile.Name, meanwhile)
	w.begins(t, afterwards.Name, afterwards)

	must(t, api.Pause())
	begun := time.Now()
	resumed := false
	t.Cleanup(func() {
		if !resumed {
			must(t, api.Resume())
		}
	})
	meanwhile.release(t)
	testkit.Eventually(t, stepLimit, "the end of the script", func() bool {
		return strings.Contains(meanwhile.Must(t, "cat /var/lib/hostwarrant/runs/*"), "state=ended")
	})
	unsent.signal(t, "CONT")
	<-time.After(time.Minute - time.Since(begun)) // the time is what is tested
	if n := unsent.ran(t); n != 0 {
		t.Errorf("without an API server a run was sent %d times", n)
	}
	must(t, api.Resume())
	resumed = true

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kept := w.keepRelay(ctx)
	w.answers(t)
	afterwards.release(t)
	unsent.release(t)
	for _, h := range []target{meanwhile, afterwards, unsent} {
		w.Ended(t, h.Name, "ScriptFailed", 10, 5)
		h.once(t)
	}
	cancel()
	if relay := <-kept; relay != nil {
		w.Programs.Relay = relay
	}
}

// answers waits for the API server.
func (w *world) answers(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, stepLimit, "the API server", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := w.ControlPlane.Client().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err == nil
	})
}

// keepRelay starts a relay whenever there is none, as a Deployment does, and in the end gives the last it started.
func (w *world) keepRelay(ctx context.Context) <-chan *product.Program {
	last := make(chan *product.Program, 1)
	go func() {
		var current *product.Program
		defer func() { last <- current }()
		done := w.Programs.Relay.Done()
		for {
			select {
			case <-ctx.Done():
				return
			case <-done:
			}
			relay, err := w.Product.StartRelayAs(ctx, "relay-restarted")
			if err != nil {
				<-time.After(time.Second)
				continue
			}
			current, done = relay, relay.Done()
		}
	}()
	return last
}
