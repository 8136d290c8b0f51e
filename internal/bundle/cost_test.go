package bundle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

// many is a set of n members that contradict each other, as many known slots, and as much junk.
func many(n int) bundle.Set {
	s := bundle.Set{Namespace: "pool", Name: "redis", Known: bundle.Known{Marks: map[ledger.Slot]ledger.SlotMark{}}}
	for i := range n {
		f := part(fmt.Sprintf("base/m%05d", i), []string{alice, bob}[i%2], 1, fragment.ProfileSpec{
			Execs: []fragment.Exec{{Path: fmt.Sprint("/bin/", i)}}, Opens: []fragment.Open{{Path: "/etc/passwd", Flags: []string{"O_RDONLY"}}},
			Egress: []fragment.Neighbor{{Identifier: fmt.Sprint("peer-", i%10), DNS: fmt.Sprint(i)}}, ImageTag: fmt.Sprint(i),
		})
		s.Candidates = append(s.Candidates, bundle.Candidate{Namespace: "pool", Name: f.Name, Fragment: f},
			bundle.Candidate{Namespace: "pool", Name: fmt.Sprint("junk-", i), Refusal: decision.Errorf(decision.Unsigned, "junk")})
		s.Known.Marks[ledger.SlotOf("pool", f)] = ledger.SlotMarkOf(f)
	}
	s.Known.Last = bundle.Compose(s).Composite
	return s
}

// TestCostIsLinear: ten times the members may cost twelve times the time. The least of some runs
// counts, since what else the machine does only ever adds.
func TestCostIsLinear(t *testing.T) {
	small, large := many(1000), many(10_000)
	least := func(s bundle.Set) time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			if o := bundle.Compose(s); o.Verdict != bundle.Accepted || len(o.Composite.Conflicts) != 11 {
				t.Fatalf("%v, %d conflicts", o.Refusal, len(o.Composite.Conflicts))
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	var ratio float64
	for range 5 { // the large one is measured longer, and so more often disturbed
		a, b := least(small), least(large)
		ratio = float64(b) / float64(a)
		t.Logf("1,000: %s; 10,000: %s; %.1f times", a, b, ratio)
		if ratio <= 12 {
			return
		}
	}
	t.Errorf("10,000 members cost %.1f times what 1,000 cost", ratio)
}
