package bundle_test

import (
	"fmt"
	"syscall"
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

// processorTime is what this process has used so far, in all its threads.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestCostIsLinear: ten times the members take about ten times the memory and time. What is quadratic
// takes a hundred times as much; that is told apart here, on a machine that does other things too. The
// bound of 12 is held by make bench-bundle, with the verification that is most of the work.
func TestCostIsLinear(t *testing.T) {
	small, large := many(1000), many(10_000)
	compose := func(s bundle.Set) {
		if o := bundle.Compose(s); o.Verdict != bundle.Accepted || len(o.Composite.Conflicts) != 11 {
			t.Fatalf("%v, %d conflicts", o.Refusal, len(o.Composite.Conflicts))
		}
	}
	allocations := testing.AllocsPerRun(1, func() { compose(large) }) / testing.AllocsPerRun(1, func() { compose(small) })
	if allocations > 12 {
		t.Errorf("10,000 members take %.1f times the allocations of 1,000", allocations)
	}
	began := processorTime(t)
	for range 30 {
		compose(small)
	}
	between := processorTime(t)
	for range 3 {
		compose(large)
	}
	times := 10 * float64(processorTime(t)-between) / float64(between-began)
	t.Logf("10,000 members take %.1f times the allocations and %.1f times the processor time of 1,000", allocations, times)
	if times > 40 {
		t.Errorf("10,000 members take %.1f times the processor time of 1,000", times)
	}
}
