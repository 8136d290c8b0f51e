//go:build linux

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// replicas puts n webhook processes behind the balancer until the test ends.
func (i *installation) replicas(t *testing.T, n int, flags ...string) *harness.Replicas {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := harness.StartReplicas(ctx, i.product, i.balancer, n, flags...)
	t.Cleanup(func() {
		i.balancer.Set(i.at)
		must(t, r.Close())
	})
	must(t, err)
	return r
}

// stream is one client's server-side applies: signed profiles that change each time, so that each
// is judged, and unsigned ones, new and as changes of the signed.
type stream struct {
	i                *installation
	label            string
	variants         [2]map[string]string
	signed           [2]map[string]string
	good, bad        harness.Tally
	strange          atomic.Int64 // stored objects that nobody signed
	firstStrange     sync.Once
	firstStrangeName string
}

func newStream(t *testing.T, i *installation, label string) *stream {
	t.Helper()
	s := &stream{i: i, label: label}
	for n := range s.variants {
		s.variants[n] = join(func(text string) string { return text + fmt.Sprintf("# variant %d of %s\n", n, label) })
		s.signed[n] = signatures(t, i.signer, s.variants[n])
	}
	s.watch(t)
	t.Cleanup(func() {
		must(t, i.writer.Client().Resource(harness.Profiles()).DeleteCollection(soon(t), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "trial=" + label}))
	})
	return s
}

const streamNames = 20

// object is the n-th to be applied, and whether it is signed. Two of three are.
func (s *stream) object(t *testing.T, n int) (raw []byte, signed bool) {
	t.Helper()
	name, variant := fmt.Sprintf("%s-%d", s.label, n%streamNames), n/streamNames%2
	switch n % 3 {
	case 0: // nothing vouches for this content, in an object that may be there already
		raw = profile(t, name, join(func(text string) string { return text + fmt.Sprintf("id # %d\n", n) }), s.signed[variant])
	case 1:
		if n%2 == 0 { // a new object without signatures
			return s.labelled(profile(t, fmt.Sprintf("%s-unsigned-%d", s.label, n), s.variants[variant], nil)), false
		}
		fallthrough
	default:
		raw, signed = profile(t, name, s.variants[variant], s.signed[variant]), true
	}
	return s.labelled(raw), signed
}

func (s *stream) labelled(raw []byte) []byte {
	return []byte(strings.Replace(string(raw), `"metadata":{`, `"metadata":{"labels":{"trial":"`+s.label+`"},`, 1))
}

// apply writes the objects numbered up to n, several at a time.
func (s *stream) apply(t *testing.T, n int) {
	t.Helper()
	harness.Spread(n, 4, func(number int) {
		raw, signed := s.object(t, number)
		began := time.Now()
		err := s.i.writer.Apply(t.Context(), harness.Profiles(), raw)
		tally := &s.bad
		if signed {
			tally = &s.good
		}
		tally.Add(err, time.Since(began))
	})
}

// watch looks at every stored version of the stream's objects.
func (s *stream) watch(t *testing.T) {
	t.Helper()
	w, err := s.i.writer.Client().Resource(harness.Profiles()).Watch(t.Context(), metav1.ListOptions{LabelSelector: "trial=" + s.label})
	must(t, err)
	t.Cleanup(w.Stop)
	go func() {
		for event := range w.ResultChan() {
			if o, ok := event.Object.(*unstructured.Unstructured); ok && !s.genuine(o) {
				s.strange.Add(1)
				s.firstStrange.Do(func() { s.firstStrangeName = o.GetName() })
			}
		}
	}()
}

// genuine says whether the scripts are a variant that was signed, with its signatures.
func (s *stream) genuine(o *unstructured.Unstructured) bool {
	scripts, _, err := unstructured.NestedStringMap(o.Object, "spec", "scripts")
	if err != nil {
		return false
	}
	signed, _, err := unstructured.NestedStringMap(o.Object, "spec", "signatures")
	if err != nil {
		return false
	}
	for n := range s.variants {
		if reflect.DeepEqual(scripts, s.variants[n]) && reflect.DeepEqual(signed, s.signed[n]) {
			return true
		}
	}
	return false
}

// nothingStrange lists what is stored once more, besides what was seen on the way.
func (s *stream) nothingStrange(t *testing.T) {
	t.Helper()
	list, err := s.i.writer.Client().Resource(harness.Profiles()).List(soon(t), metav1.ListOptions{LabelSelector: "trial=" + s.label})
	must(t, err)
	for k := range list.Items {
		if !s.genuine(&list.Items[k]) {
			t.Errorf("stored, and nobody signed it: %s", list.Items[k].GetName())
		}
	}
	if n := s.strange.Load(); n != 0 {
		t.Errorf("%d stored versions were seen that nobody signed; the first of %s", n, s.firstStrangeName)
	}
	if n := s.bad.Count(harness.Admitted); n != 0 {
		t.Errorf("%d unsigned objects were admitted", n)
	}
	if n := s.bad.Count(harness.Other) + s.good.Count(harness.Other); n != 0 {
		t.Errorf("%d writes ended otherwise: %q %q", n, s.bad.Said(harness.Other), s.good.Said(harness.Other))
	}
}

// disturb replaces one replica after the other, every two seconds, until the work is done, and
// returns how many.
func disturb(t *testing.T, r *harness.Replicas, signal syscall.Signal, work func()) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return n
		case <-tick.C:
			must(t, r.Replace(t.Context(), n%2, signal))
		}
	}
}

func TestReplicasThatDrainRefuseNothingSigned(t *testing.T) {
	i := install(t)
	r := i.replicas(t, 2, "--drain-delay=3s")
	s := newStream(t, i, "ha-term")
	began := time.Now()
	ended := disturb(t, r, syscall.SIGTERM, func() { s.apply(t, times(2000, 10000)) })
	t.Logf("SIGTERM to one of two replicas %d times in %v, %d connections", ended, in(began), i.balancer.Connections())
	t.Logf("signed: %v", &s.good)
	t.Logf("unsigned: %v", &s.bad)
	if ended < 3 {
		t.Errorf("only %d replicas were ended: the test was over before it began", ended)
	}
	if n := s.good.Total() - s.good.Count(harness.Admitted); n != 0 {
		t.Errorf("%d signed objects were refused: %q %q", n, s.good.Said(harness.Refused), s.good.Said(harness.Connection))
	}
	if n := s.bad.Total() - s.bad.Count(harness.Refused); n != 0 {
		t.Errorf("%d unsigned objects were not refused by a verdict: %q", n, s.bad.Said(harness.Connection))
	}
	s.nothingStrange(t)
	must(t, r.Drained(soon(t)))
}

func TestReplicasThatAreKilledAdmitNothingUnsigned(t *testing.T) {
	i := install(t)
	r := i.replicas(t, 2)
	s := newStream(t, i, "ha-kill")
	began := time.Now()
	ended := disturb(t, r, syscall.SIGKILL, func() { s.apply(t, times(1500, 10000)) })
	t.Logf("SIGKILL to one of two replicas %d times in %v", ended, in(began))
	t.Logf("signed: %v", &s.good)
	t.Logf("unsigned: %v", &s.bad)
	if ended < 2 {
		t.Errorf("only %d replicas were killed: the test was over before it began", ended)
	}
	if n := s.good.Count(harness.Refused); n != 0 {
		t.Errorf("%d signed objects were refused by a verdict: %q", n, s.good.Said(harness.Refused))
	}
	if s.good.Count(harness.Admitted) == 0 {
		t.Error("no signed object was admitted")
	}
	s.nothingStrange(t)
}

func TestAllReplicasRestartedAdmitNothingUnsigned(t *testing.T) {
	i := install(t)
	r := i.replicas(t, 2)
	var tally harness.Tally
	s := newStream(t, i, "ha-all")
	stop := make(chan struct{})
	var running sync.WaitGroup
	var number atomic.Int64
	for range 4 {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				raw := s.labelled(profile(t, fmt.Sprintf("ha-all-%d", number.Add(1)), scripts(), nil))
				began := time.Now()
				tally.Add(i.writer.Apply(t.Context(), harness.Profiles(), raw), time.Since(began))
			}
		})
	}
	for range times(2, 10) {
		must(t, r.KillAll(t.Context()))
	}
	close(stop)
	running.Wait()
	t.Logf("unsigned, while all replicas were killed and started: %v", &tally)
	if tally.Count(harness.Admitted) != 0 || tally.Count(harness.Other) != 0 || tally.Count(harness.Connection) == 0 {
		t.Errorf("%v: %q", &tally, tally.Said(harness.Other))
	}
	s.nothingStrange(t)
	for n, replica := range r.Present() {
		answer := asks(t, i.poster(t, replica.Address), reviewOf(t, admissionv1.Create, profile(t, "p", scripts(), signatures(t, i.signer, scripts())), nil))
		if !answer.allowed {
			t.Errorf("replica %d, started again: %v", n, answer)
		}
	}
}

// TestReplicasNeedNoLeader: three replicas, no controller, and no right to any Lease.
func TestReplicasNeedNoLeader(t *testing.T) {
	i := install(t)
	for _, verb := range []string{"get", "create", "update", "patch"} {
		r := i.kubectl(t, nil, "auth", "can-i", "-n", "hostwarrant-system", "--as=system:serviceaccount:hostwarrant-system:hostwarrant-webhook", verb, "leases.coordination.k8s.io")
		if got := strings.TrimSpace(r.Stdout); got != "no" {
			t.Errorf("may the webhook %s leases: %s", verb, got)
		}
	}
	i.withoutController(t)
	good := profile(t, "p", scripts(), signatures(t, i.signer, scripts()))
	for n, replica := range i.replicas(t, 3).Present() {
		p := i.poster(t, replica.Address)
		if answer := asks(t, p, reviewOf(t, admissionv1.Create, good, nil)); !answer.allowed {
			t.Errorf("replica %d: %v", n, answer)
		}
		asks(t, p, reviewOf(t, admissionv1.Create, profile(t, "p", scripts(), nil), nil)).deny(t, "Unsigned")
	}
}

// TestALeaderDoesNotQueueBehindItself: what a program asks of its Lease is of another flow than all else it asks.
func TestALeaderDoesNotQueueBehindItself(t *testing.T) {
	i := install(t)
	dispatched := func() float64 {
		_, text, ok := strings.Cut(i.succeeds(t, nil, "get", "--raw", "/metrics").Stdout, `apiserver_flowcontrol_dispatched_requests_total{flow_schema="hostwarrant-leader-election",priority_level="leader-election"} `)
		if !ok {
			return 0
		}
		line, _, _ := strings.Cut(text, "\n")
		n, err := strconv.ParseFloat(line, 64)
		must(t, err)
		return n
	}
	asks := func(program string, args ...string) {
		i.kubectl(t, nil, slices.Concat([]string{"get", "--as=system:serviceaccount:hostwarrant-system:" + program}, args)...)
	}
	i.withoutController(t)
	for _, program := range []string{"hostwarrant-controller", "hostwarrant-relay", "hostwarrant-minter"} {
		before := dispatched()
		eventually(t, "the Lease of "+program+" to be asked for in its own flow", func() bool {
			asks(program, "lease", program, "-n", "hostwarrant-system")
			return dispatched() > before
		})
	}
	before := dispatched()
	asks("hostwarrant-relay", "hostruns", "-A")
	asks("hostwarrant-relay", "lease", "hostwarrant-relay", "-n", "kube-system")
	asks("hostwarrant-webhook", "lease", "hostwarrant-webhook", "-n", "hostwarrant-system")
	if now := dispatched(); now != before {
		t.Errorf("%v requests of the flow were dispatched that are none of it", now-before)
	}
}

func TestAPolicyReachesEveryReplica(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	present := i.replicas(t, 3).Present()
	other := testkit.NewSigner(t, "ed25519")
	byOther := reviewOf(t, admissionv1.Create, profile(t, "p", scripts(), signatures(t, other, scripts())), nil)
	for _, replica := range present {
		asks(t, i.poster(t, replica.Address), byOther).deny(t, "SignerUnknown")
	}
	began := time.Now()
	i.offer(t, policyDocument(t, i.version+1, other))
	for n, replica := range present {
		p := i.poster(t, replica.Address)
		eventually(t, "the policy to be in force", func() bool { return asks(t, p, byOther).allowed })
		t.Logf("replica %d judges by the new policy %v after kubectl apply began", n, in(began))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v; want seconds", took)
	}
}

// TestAPolicySwapIsSeenWhole swaps the policy while requests run: every answer is that of one
// policy, the one that it says it is of.
func TestAPolicySwapIsSeenWhole(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	other := testkit.NewSigner(t, "ed25519")
	ours := reviewOf(t, admissionv1.Create, profile(t, "p", scripts(), signatures(t, i.signer, scripts())), nil)
	p := i.poster(t, i.at)
	first, last := i.version, i.version+times(6, 20)
	trusted := func(version int) bool { return (version-first)%2 == 0 } // by turns, beginning with the one in force
	seen := map[int]int{}
	var mu sync.Mutex
	stop := make(chan struct{})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := p.Review(t.Context(), "/validate", ours)
				if err != nil {
					t.Error(err)
					return
				}
				a := answerOf(r)
				want := map[bool]string{true: "Verified", false: "SignerUnknown"}[trusted(a.version)]
				if a.reason != want || a.allowed != trusted(a.version) || a.version < first || a.version > last {
					t.Errorf("%v; want %s by one of the policies %d to %d", a, want, first, last)
				}
				mu.Lock()
				seen[a.version]++
				mu.Unlock()
			}
		})
	}
	for i.version < last {
		signer := i.signer
		if !trusted(i.version + 1) {
			signer = other
		}
		i.newPolicy(t, nil, signer)
	}
	close(stop)
	running.Wait()
	total := 0
	for _, n := range seen {
		total += n
	}
	t.Logf("%d answers by %d policies, one after the other", total, len(seen))
	if len(seen) < 3 {
		t.Errorf("answers by %d policies only", len(seen))
	}
}
