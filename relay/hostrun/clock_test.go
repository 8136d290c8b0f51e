package hostrun

import (
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// A relay whose clock is wrong counts a run's time by it, from a creation that the API server dates: within the run's
// deadline it makes no difference, beyond it the run is given up unsent. One whose clock stands before the policy's
// begin has no policy, and waits for one. Nothing is sent that a right clock would not have sent.
func TestARelayWithAnotherClock(t *testing.T) {
	cases := map[string]struct {
		skew   time.Duration
		sent   int
		reason string
		over   bool
	}{
		"right":              {0, 1, "Succeeded", true},
		"half an hour ahead": {time.Hour / 2, 1, "Succeeded", true},
		"an hour behind":     {-time.Hour, 1, "Succeeded", true},
		"an hour ahead":      {time.Hour, 0, "DeadlineExceeded", true},
		"a day ahead":        {24 * time.Hour, 0, "DeadlineExceeded", true},
		"a year behind":      {-365 * 24 * time.Hour, 0, "PolicyUnavailable", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = w.now.Add(c.skew)
			w.start()
			w.reconcile()
			got := condition(w.get(), v1alpha1.ConditionSucceeded)
			if got == nil || len(w.courier.deliveries) != c.sent || got.Reason != c.reason || isFinished(w.get()) != c.over {
				t.Fatalf("sent %d times, Succeeded %+v; want %d, %q, over %t: %+v", len(w.courier.deliveries), got, c.sent, c.reason, c.over, w.get().Status)
			}
		})
	}
}

// A clock that jumps by a day while a run is under way loses nothing: the host is asked, whatever the time is.
func TestAClockThatJumpsWhileARunIsUnderWay(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.courier.onDeliver = func() { w.now = w.now.Add(jump) }
			w.start()
			w.reconcile()
			if got := condition(w.get(), v1alpha1.ConditionSucceeded); got == nil || got.Reason != "Succeeded" || len(w.courier.deliveries) != 1 {
				t.Fatalf("%+v, sent %d times", got, len(w.courier.deliveries))
			}
		})
	}
}
