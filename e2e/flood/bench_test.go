//go:build linux

package flood

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

const (
	scriptTime = 3 * time.Second
	concurrent = 100 // the relay's default
)

// BenchmarkRelay is the relay's figures: so many hosts with a script of 3 s each, 100 at once. hosts is set by
// BENCH_HOSTS, 1,000 without.
func BenchmarkRelay(b *testing.B) {
	n := 1000
	if text := os.Getenv("BENCH_HOSTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		must(b, err)
	}
	load, err := os.ReadFile("/proc/loadavg")
	must(b, err)
	w := newWorld(b, n, scriptTime)
	handshakes := w.handshakes(b)
	before := w.account(b)
	b.ResetTimer()
	w.runs(b)
	created := time.Since(before.at)
	w.end(b, n)
	b.StopTimer()
	u := use{before, w.account(b)}
	writes := u.calls("POST", "PUT", "PATCH", "DELETE") / float64(n)
	ideal := scriptTime * time.Duration((n+concurrent-1)/concurrent)
	times := func(d time.Duration) float64 { return d.Seconds() / ideal.Seconds() }
	busy := u.ours() / time.Duration(runtime.NumCPU())
	fmt.Printf("relay, %d hosts × %s at concurrency %d; load %.4s before\n", n, scriptTime, concurrent, load)
	fmt.Printf("  %6.1f s  all runs, %.2f × ideal (%.1f s); creating them took %.1f s of it\n", u.took().Seconds(), times(u.took()), ideal.Seconds(), created.Seconds())
	fmt.Printf("  %6.1f s  of all %d processors are what the programs below needed, hosts and control plane included: %.2f × ideal\n", busy.Seconds(), runtime.NumCPU(), times(busy))
	fmt.Printf("  %6.1f    API writes a run, the lease's renewal included; %.1f reads; %.1f connections to hosts\n",
		writes, u.calls("GET")/float64(n), float64(u.after.connected-u.before.connected)/float64(n))
	fmt.Printf("  %6d MiB resident at most\n", w.Programs.Relay.PeakKiB(b)>>10)
	fmt.Printf("  processor time in s: %s\n", u.processors())
	fmt.Printf("  requests a run, of all clients: %s\n", u.requests(n))
	floor := w.writes(b, int(writes+0.5))
	fmt.Printf("  %6.1f s  floor: %d bare API writes a run; %.1f s as many handshakes, both at the same concurrency\n", floor.Seconds(), int(writes+0.5), handshakes.Seconds())
	b.ReportMetric(times(u.took()), "×ideal")
	b.ReportMetric(writes, "writes/run")
	if begun := len(scripts(b, w.hosts)); begun != n {
		b.Fatalf("%d scripts of %d runs", begun, n)
	}
}

// end waits until all runs have ended. The relay is asked only when all scripts have begun: to write its
// metrics takes it as long as a run does.
func (w *world) end(t testing.TB, n int) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		select {
		case <-w.Programs.Relay.Done(): // it lost its lease, for instance, and here nobody starts it again
			t.Fatalf("the relay has ended: %s", w.Programs.Relay.Tail(1))
		default:
		}
		if len(scripts(t, w.hosts)) < n {
			continue
		}
		m, err := harness.ReadMetrics(t.Context(), w.Programs.Relay.Metrics)
		must(t, err)
		if m.Sum("hostwarrant_runs_total") == float64(n) {
			return
		}
	}
}

// handshakes is how long as many connections take, which do nothing else.
func (w *world) handshakes(t testing.TB) time.Duration {
	t.Helper()
	login, err := transport.ParseLoginKey(w.Login.PEM)
	must(t, err)
	pin, err := transport.ParsePin([]byte(w.key.Line))
	must(t, err)
	began := time.Now()
	harness.Spread(w.n, concurrent, func(i int) {
		c, err := transport.Connect(t.Context(), transport.Target{Address: net.JoinHostPort(address(i), "22"), User: "kpssh", Login: login, Pin: pin}, transport.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", address(i), err)
			return
		}
		c.Close()
	})
	return time.Since(began)
}

// writes is how long it takes to write each times for each host.
func (w *world) writes(t testing.TB, each int) time.Duration {
	t.Helper()
	maps := w.ControlPlane.Client().CoreV1().ConfigMaps(courier.Namespace)
	began := time.Now()
	harness.Spread(w.n*each, concurrent, func(i int) {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("floor-", i)}}, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("floor-%d: %v", i, err)
		}
	})
	return time.Since(began)
}
