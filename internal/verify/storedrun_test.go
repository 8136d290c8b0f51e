package verify_test

import (
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Of runs that were admitted at once for one node name exactly one has it, whatever the order in which
// they are looked at.
func TestOfStoredRunsForOneNameOneHasIt(t *testing.T) {
	c := newCourt(t)
	at := func(host, uid string, age time.Duration, change func(*object.HostRun)) *object.HostRun {
		r := &object.HostRun{
			Meta: object.Meta{Kind: object.KindHostRun, Namespace: "pool", Name: "r-" + host, UID: uid},
			Host: host, Profile: "tls", Phase: "join", NodeName: "pool-1", Created: testkit.Now().Add(-age), Deadline: time.Hour,
		}
		if change != nil {
			change(r)
		}
		return r
	}
	sent := func(r *object.HostRun) { r.Sent = true }
	token := func(r *object.HostRun) { r.TokenID = "hwab12" }
	joined := func(r *object.HostRun) { r.Finished, r.Succeeded, r.Ended = true, true, testkit.Now() }
	for name, tt := range map[string]struct{ has, hasNot *object.HostRun }{
		"the older":                         {at("a", "2", time.Minute, nil), at("b", "1", time.Second, nil)},
		"of the same second the lower UID":  {at("a", "1", time.Minute, nil), at("b", "2", time.Minute, nil)},
		"one that was sent before an older": {at("a", "2", time.Second, sent), at("b", "1", time.Minute, nil)},
		"one with a token before an older":  {at("a", "2", time.Second, token), at("b", "1", time.Minute, nil)},
		"one whose host joined before all":  {at("a", "2", time.Second, joined), at("b", "1", time.Minute, token)},
		"of two that were sent the older":   {at("a", "2", time.Minute, sent), at("b", "1", time.Second, sent)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, runs := range [][]*object.HostRun{{tt.has, tt.hasNot}, {tt.hasNot, tt.has}} {
				c.s.Stored = &verify.Held{Runs: runs}
				if d := verify.StoredHostRun(c.s, tt.has); !d.Allowed() {
					t.Errorf("%s: %s", d.Reason, d.Message())
				}
				if d := verify.StoredHostRun(c.s, tt.hasNot); d.Allowed() || d.Reason != decision.NodeNameTaken {
					t.Errorf("the other: %s", d.Reason)
				}
				// A new one waits for its turn whoever is older.
				if d := verify.HostRun(c.s, tt.has); d.Allowed() || d.Reason != decision.NodeNameTaken {
					t.Errorf("at admission: %s", d.Reason)
				}
			}
		})
	}
	twins := []*object.HostRun{at("a", "", 0, nil), at("b", "", 0, nil)}
	c.s.Stored = &verify.Held{Runs: twins}
	for _, r := range twins {
		if d := verify.StoredHostRun(c.s, r); d.Reason != decision.NodeNameTaken {
			t.Errorf("two that nothing tells apart: %s", d.Reason)
		}
	}
}
