package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// job is an item: what is wanted of it, and which of those it is.
type job struct {
	Claim
	n int
}

func jobClaim(j job) Claim { return j.Claim }

func jobOf(namespace, profile, host string, n int) job {
	return job{Claim{Namespace: namespace, Profile: profile, Host: host}, n}
}

// line is a Line and the items that are worked on.
type line struct {
	t *testing.T
	*Line[job]
	at []job
}

func newLine(t *testing.T, slots int) *line {
	return &line{t: t, Line: New(slots, jobClaim)}
}

// take takes all items whose turn has come.
func (l *line) take() {
	l.t.Helper()
	for l.turns() > 0 {
		j, shutdown := l.Get()
		if shutdown {
			l.t.Fatal("shut down")
		}
		l.at = append(l.at, j)
	}
}

func (l *line) turns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.granted)
}

// done ends one that is worked on.
func (l *line) done(i int) job {
	j := l.at[i]
	l.at = append(l.at[:i], l.at[i+1:]...)
	l.Done(j)
	return j
}

func (l *line) want(jobs ...job) {
	l.t.Helper()
	l.take()
	if fmt.Sprint(l.at) != fmt.Sprint(jobs) {
		l.t.Fatalf("worked on are %v, want %v", l.at, jobs)
	}
}

// empty wants that nothing is left of what is over.
func (l *line) empty() {
	l.t.Helper()
	h := l.hall
	if len(h.namespaces) != 0 || len(h.hosts) != 0 || h.running != 0 || h.waiting != 0 || len(l.working) != 0 || l.busy.Len() != 0 || l.waits.Len() != 0 {
		l.t.Fatalf("left: %+v, %v, %v, %v", h, l.working, l.busy, l.waits)
	}
}

func TestOneTurnAHostAtATimeOldestFirst(t *testing.T) {
	l := newLine(t, 10)
	a0, a1, a2 := jobOf("ns", "p", "a", 0), jobOf("ns", "q", "a", 1), jobOf("ns", "p", "a", 2)
	b := jobOf("ns", "p", "b", 0)
	other := jobOf("other", "p", "a", 0) // another namespace's host of the same name
	for _, j := range []job{a0, a1, a2, b, other} {
		l.Add(j)
	}
	l.want(a0, b, other)
	if l.Len() != 2 || l.InUse() != 3 {
		t.Fatalf("%d wait, %d slots in use", l.Len(), l.InUse())
	}
	l.done(1)
	l.want(a0, other)
	l.done(0)
	l.want(other, a1)
	l.done(1)
	l.want(other, a2)
	l.done(1)
	l.done(0)
	l.empty()
}

func TestNoMoreTurnsThanSlots(t *testing.T) {
	l := newLine(t, 2)
	var jobs []job
	for n := range 3 {
		jobs = append(jobs, jobOf("ns", "p", fmt.Sprint("host-", n), n))
		l.Add(jobs[n])
	}
	l.want(jobs[0], jobs[1])
	l.done(0)
	l.want(jobs[1], jobs[2])
}

func TestAnItemWaitsOnceAndAgainWhenItIsAddedMeanwhile(t *testing.T) {
	l := newLine(t, 1)
	a, b := jobOf("ns", "p", "a", 0), jobOf("ns", "p", "b", 0)
	for _, j := range []job{a, a, b, b} {
		l.Add(j)
	}
	l.want(a)
	l.Add(a)
	l.Add(a)
	l.want(a)
	l.done(0)
	l.want(b)
	l.done(0)
	l.want(a)
	l.done(0)
	l.want()
	l.Done(a) // nobody has it
	l.empty()
}

// two profiles with a thousand items each, of which one was there first: at any moment as many of
// both are over, within a factor of two.
func TestProfilesGetOnEqually(t *testing.T) {
	for name, slots := range map[string]int{"one slot": 1, "three": 3, "ten": 10, "a hundred": 100} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t, slots)
			for _, profile := range []string{"p", "q"} {
				for n := range 1000 {
					l.Add(jobOf("ns", profile, fmt.Sprint(profile, n), n))
				}
			}
			over := map[string]int{}
			for range 2000 {
				l.take()
				over[l.done(rand.IntN(len(l.at))).Profile]++
				p, q := over["p"], over["q"]
				if slack := slots + 10; p > 2*q+slack || q > 2*p+slack {
					t.Fatalf("over are %v", over)
				}
			}
			l.empty()
		})
	}
}

func TestAProfileWhoseHostsAreSilentHoldsNoMoreThanItsShare(t *testing.T) {
	l := newLine(t, 10)
	for n := range 1000 {
		l.Add(jobOf("ns", "silent", fmt.Sprint("silent-", n), n))
	}
	l.take()
	for n := range 50 {
		l.Add(jobOf("ns", "p", fmt.Sprint("p-", n), n))
	}
	for range 10 { // the silent ones had all slots; each that gets free is now the other's
		l.done(0)
		l.take()
	}
	silent := 0
	for _, j := range l.at {
		if j.Profile == "silent" {
			silent++
		}
	}
	if silent != 5 {
		t.Fatalf("%d of 10 slots are with the silent: %v", silent, l.at)
	}
}

func TestANamespaceGainsNothingByManyProfiles(t *testing.T) {
	l := newLine(t, 10)
	for n := range 100 {
		l.Add(jobOf("many", fmt.Sprint("profile-", n), fmt.Sprint("host-", n), n))
		l.Add(jobOf("one", "p", fmt.Sprint("host-", n), n))
	}
	l.take()
	count := map[string]int{}
	for _, j := range l.at {
		count[j.Namespace]++
	}
	if count["many"] != 5 || count["one"] != 5 {
		t.Fatalf("slots: %v", count)
	}
}

// With one slot nobody has fewer than another, so that age must decide.
func TestWhoComesAndGoesGainsNothing(t *testing.T) {
	l := newLine(t, 1)
	for n := range 100 {
		l.Add(jobOf("patient", "p", fmt.Sprint("host-", n), n))
	}
	patient := 0
	for n := range 100 {
		l.Add(jobOf("brief", "p", "host", n))
		l.take()
		if l.done(0).Namespace == "patient" {
			patient++
		}
	}
	if patient < 45 {
		t.Fatalf("%d of 100 turns for who waited", patient)
	}
}

func TestATurnBesideTheItems(t *testing.T) {
	l := newLine(t, 2)
	a, b := jobOf("ns", "p", "a", 0), jobOf("ns", "p", "b", 0)
	release, err := l.Take(t.Context(), Claim{Namespace: "ns", Host: "a"})
	if err != nil {
		t.Fatal(err)
	}
	l.Add(a)
	l.Add(b)
	l.want(b)
	if l.InUse() != 2 {
		t.Fatalf("%d slots in use", l.InUse())
	}
	release()
	release() // twice is once
	l.want(b, a)
	l.done(0)
	l.done(0)
	l.empty()
}

func TestWhoGivesUpWaitingHoldsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		slots int
		host  string // that is waited for, while a is held
	}{
		"behind a host": {10, "a"},
		"for a slot":    {1, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t, c.slots)
			a := jobOf("ns", "p", "a", 0)
			l.Add(a)
			l.want(a)
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan error)
			go func() {
				_, err := l.Take(ctx, Claim{Namespace: "ns", Host: c.host})
				answered <- err
			}()
			testkit.Eventually(t, time.Minute, "waits", func() bool { return l.Len() == 1 })
			behind := jobOf("ns", "p", c.host, 1)
			l.Add(behind)
			cancel()
			if err := <-answered; !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			if l.Len() != 1 || l.InUse() != 1 {
				t.Fatalf("%d wait, %d slots in use", l.Len(), l.InUse())
			}
			l.done(0)
			l.want(behind)
			l.done(0)
			l.empty()
		})
	}
}

func TestNothingIsHandedOutOnceItIsShutDown(t *testing.T) {
	l := newLine(t, 1)
	a, b := jobOf("ns", "p", "a", 0), jobOf("ns", "p", "b", 0)
	l.Add(a)
	l.Add(b)
	l.want(a)
	drained := make(chan struct{})
	go func() { l.ShutDownWithDrain(); close(drained) }()
	testkit.Eventually(t, time.Minute, "shuts down", l.ShuttingDown)
	select {
	case <-drained:
		t.Fatal("did not wait for what is worked on")
	default:
	}
	l.done(0)
	<-drained
	if j, shutdown := l.Get(); !shutdown {
		t.Fatalf("hands out %v", j)
	}
	l.Add(jobOf("ns", "p", "c", 0))
	if l.Len() != 0 {
		t.Errorf("%d wait", l.Len())
	}
	if _, err := l.Take(t.Context(), Claim{Namespace: "ns", Host: "d"}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestShutDownEndsTheDrain(t *testing.T) {
	l := newLine(t, 1)
	l.Add(jobOf("ns", "p", "a", 0))
	l.take()
	drained := make(chan struct{})
	go func() { l.ShutDownWithDrain(); close(drained) }()
	testkit.Eventually(t, time.Minute, "shuts down", l.ShuttingDown)
	l.ShutDown()
	<-drained
}

// As the controller uses it: under client-go's queue for delays and retries, with a worker a slot.
func TestWorkersNeverShareAHost(t *testing.T) {
	const slots, hosts, jobs = 8, 5, 400
	l := New(slots, jobClaim)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[job](time.Millisecond, time.Millisecond)
	delays := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[job]{Queue: l})
	q := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[job]{DelayingQueue: delays})
	var on [hosts]atomic.Int32
	var shared, over atomic.Int32
	work := func(j job) {
		if on[j.n%hosts].Add(1) > 1 {
			shared.Add(1)
		}
		defer on[j.n%hosts].Add(-1)
		if j.n%3 == 0 && q.NumRequeues(j) == 0 {
			q.AddRateLimited(j)
			return
		}
		over.Add(1)
	}
	for range slots {
		go func() {
			for {
				j, shutdown := q.Get()
				if shutdown {
					return
				}
				work(j)
				q.Done(j)
			}
		}()
	}
	for n := range jobs {
		q.Add(jobOf("ns", "p", fmt.Sprint("host-", n%hosts), n))
	}
	testkit.Eventually(t, time.Minute, "all are over", func() bool { return over.Load() == jobs })
	q.ShutDown()
	if shared.Load() != 0 {
		t.Fatalf("%d times two were on one host", shared.Load())
	}
}

func BenchmarkFiveThousandWait(b *testing.B) {
	for b.Loop() {
		l := New(100, jobClaim)
		for n := range 5000 {
			l.Add(jobOf(fmt.Sprint("ns-", n%7), fmt.Sprint("p-", n%13), fmt.Sprint("host-", n), n))
		}
		for range 5000 {
			j, _ := l.Get()
			l.Done(j)
		}
	}
}
