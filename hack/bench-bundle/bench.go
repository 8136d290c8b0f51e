package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// bound is how much more 10,000 may cost than 1,000.
const bound = 12

func sizes() []int { return []int{3, 64, 1000, 10_000} }

// costs are those of one run of one size.
type costs struct {
	verify, assemble, again time.Duration // processor time
	checked, checkedAgain   int           // signatures
	memory                  int           // KiB, at most, without what was there before
}

func bench(runs int, out io.Writer) error {
	s, err := newSigner()
	if err != nil {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg") // figures of a busy machine are not worth much
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "fragments of one bundle; ms of processor time, median of %d runs that took turns; %d processors, load %.4s before\n", runs, runtime.NumCPU(), load)
	all := map[int][]costs{}
	for range runs {
		for _, n := range sizes() {
			c, err := measure(s, n)
			if err != nil {
				return fmt.Errorf("%d fragments: %v", n, err)
			}
			all[n] = append(all[n], c)
		}
	}
	return report(all, out)
}

func report(all map[int][]costs, out io.Writer) error {
	fmt.Fprintf(out, "%9s %10s %10s %10s %8s %12s %10s %14s %11s\n",
		"fragments", "verify", "assemble", "both", "each", "checks", "unchanged", "checks then", "memory MiB")
	both := map[int]time.Duration{}
	for _, n := range sizes() {
		runs := all[n]
		both[n] = median(runs, func(c costs) time.Duration { return c.verify + c.assemble })
		fmt.Fprintf(out, "%9d %10.2f %10.2f %10.2f %8.3f %12d %10.2f %14d %11.1f\n", n,
			ms(median(runs, func(c costs) time.Duration { return c.verify })), ms(median(runs, func(c costs) time.Duration { return c.assemble })),
			ms(both[n]), ms(both[n])/float64(n), runs[0].checked, ms(median(runs, func(c costs) time.Duration { return c.again })), runs[0].checkedAgain,
			float64(median(runs, func(c costs) int { return c.memory }))/1024)
	}
	ratio := float64(both[10_000]) / float64(both[1000])
	fmt.Fprintf(out, "10,000 cost %.1f times what 1,000 cost (bound %d)\n", ratio, bound)
	if ratio > bound {
		return errors.New("that is over the bound")
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median[T ~int | ~int64](runs []costs, of func(costs) T) T {
	var all []T
	for _, c := range runs {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// reader judges carriers, each once, and counts.
type reader struct {
	engine   verify.Snapshot
	verdicts *bundle.Verdicts
	checked  int
}

func (r *reader) candidates(carriers []*fragment.Object) []bundle.Candidate {
	all := make([]bundle.Candidate, len(carriers))
	for i, o := range carriers {
		found := r.verdicts.Of(bundle.KeyOf(o, r.engine.Policy.Digest), func() bundle.Verified {
			r.checked++
			f, d := verify.Fragment(r.engine, o)
			if !d.Allowed() {
				return bundle.Verified{Fragment: f, Refusal: decision.Errorf(d.Reason, "%s", d.What)}
			}
			return bundle.Verified{Fragment: f}
		})
		all[i] = bundle.Candidate{Namespace: o.Namespace, Name: o.Name, Fragment: found.Fragment, Refusal: found.Refusal}
	}
	return all
}

// measure verifies and assembles n fragments, and again when nothing changed.
func measure(s *signer, n int) (costs, error) {
	carriers, err := s.carriers(n)
	if err != nil {
		return costs{}, err
	}
	debug.FreeOSMemory()
	before, err := peakMemory()
	if err != nil {
		return costs{}, err
	}
	r := &reader{engine: s.trusted(), verdicts: bundle.NewVerdicts(n)}
	var c costs
	set := bundle.Set{Namespace: namespace, Name: bundled, Known: bundle.Known{Marks: map[ledger.Slot]ledger.SlotMark{}}}
	c.verify = timed(func() { set.Candidates = r.candidates(carriers) })
	c.checked = r.checked
	var first bundle.Outcome
	c.assemble = timed(func() { first = bundle.Compose(set) })
	set.Known = bundle.Known{Last: first.Composite, Marks: first.Marks}
	var second bundle.Outcome
	c.again = timed(func() {
		set.Candidates = r.candidates(carriers)
		second = bundle.Compose(set)
	})
	c.checkedAgain = r.checked - c.checked
	after, err := highest()
	c.memory = after - before
	return c, wrong(n, c, first, second, err)
}

// wrong says what is wrong with the answers: a figure for a wrong one is worth nothing.
func wrong(n int, c costs, first, second bundle.Outcome, err error) error {
	switch {
	case err != nil:
		return err
	case first.Verdict != bundle.Accepted || len(first.Composite.Leaves) != n || len(first.Marks) != n:
		return fmt.Errorf("the set was not accepted whole: %v", first.Refusal)
	case second.Verdict != bundle.Accepted || second.Composite.Root != first.Composite.Root || len(second.Marks) != 0:
		return fmt.Errorf("the unchanged set is another one: %v", second.Refusal)
	case c.checked != n || c.checkedAgain != 0:
		return fmt.Errorf("%d signatures were checked, and %d of the unchanged set", c.checked, c.checkedAgain)
	default:
		return nil
	}
}

// timed is the processor time of all threads that do takes, the garbage it leaves included.
func timed(do func()) time.Duration {
	runtime.GC()
	began := used()
	do()
	return used() - began
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory forgets how much memory was in use at most, and gives what is in use now.
func peakMemory() (int, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return highest()
}

// highest is how much memory was in use at most, in KiB.
func highest() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.Atoi(strings.Fields(value)[0])
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
