//go:build linux

package flood

import (
	"os"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// count is how many hosts have a run at once: 2,000 with E2E_FULL=1, and else what takes less of a busy machine.
func count() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 2000
	}
	return 300
}

// All runs of two profiles, those of the first created before those of the second: each happens once, and at any
// moment as many of both have been begun, within a factor of two once both are there.
func TestManyRunsAtOnceHappenOnceEachAndInAFairOrder(t *testing.T) {
	n := count()
	w := newWorld(t, n, 200*time.Millisecond)
	must(t, w.Programs.Relay.Stop()) // it finds all at once
	w.runs(t)
	var err error
	w.Programs.Relay, err = w.Product.StartRelay(t.Context())
	must(t, err)
	testkit.Eventually(t, 20*time.Minute, "the end of all runs", func() bool { return w.over(t) == n })

	profile := map[string]string{}
	for _, r := range w.list(t) {
		if c := courier.ConditionOf(&r, "Succeeded"); c.Reason != "Succeeded" || r.Status.Attempts != 1 {
			t.Fatalf("%s ended %s after %d attempts: %s", r.Name, c.Reason, r.Status.Attempts, c.Message)
		}
		profile[r.Status.RunID] = r.Spec.ProfileRef.Name
	}
	order := scripts(t, w.hosts)
	if len(order) != n || len(profile) != n {
		t.Fatalf("%d runs with %d run-ids, %d scripts", n, len(profile), len(order))
	}
	begun := map[string]int{}
	for i, id := range order {
		name, known := profile[id]
		if !known {
			t.Fatalf("a script of run-id %q, which is nobody's or ran before", id)
		}
		delete(profile, id) // once
		begun[name]++
		one, two := begun["one"], begun["two"]
		// The first that are there take all slots; from then on each that gets free is the others' until they have as many.
		if i >= 2*concurrent && (one > 2*two || two > 2*one) {
			t.Fatalf("after %d scripts %d are of one profile and %d of the other", i+1, one, two)
		}
	}
}
