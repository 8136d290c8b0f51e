//go:build linux

package flood

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
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
	before, err := harness.ReadMetrics(b.Context(), w.Programs.Relay.Metrics)
	must(b, err)
	b.ResetTimer()
	began := time.Now()
	w.runs(b)
	created := time.Since(began)
	testkit.Eventually(b, time.Hour, "the end of all runs", func() bool {
		m, err := harness.ReadMetrics(b.Context(), w.Programs.Relay.Metrics)
		must(b, err)
		return m.Sum("hostwarrant_runs_total") == float64(n)
	})
	took := time.Since(began)
	b.StopTimer()
	after, err := harness.ReadMetrics(b.Context(), w.Programs.Relay.Metrics)
	must(b, err)
	calls := func(methods ...string) float64 {
		sum := 0.0
		for _, method := range methods {
			label := `method="` + method + `"`
			sum += after.Sum("rest_client_requests_total", label) - before.Sum("rest_client_requests_total", label)
		}
		return sum / float64(n)
	}
	writes := calls("POST", "PUT", "PATCH", "DELETE")
	floor := w.writes(b, int(writes+0.5))
	ideal := scriptTime * time.Duration((n+concurrent-1)/concurrent)
	fmt.Printf("relay, %d hosts × %s at concurrency %d; load %.4s before\n", n, scriptTime, concurrent, load)
	fmt.Printf("  %6.1f s  all runs, %.2f × ideal (%.1f s); creating them took %.1f s of it\n", took.Seconds(), took.Seconds()/ideal.Seconds(), ideal.Seconds(), created.Seconds())
	fmt.Printf("  %6.1f s  floor: %d bare API writes a run; %.1f s as many handshakes, both at the same concurrency\n", floor.Seconds(), int(writes+0.5), handshakes.Seconds())
	fmt.Printf("  %6.1f    API writes a run, the lease's renewal included; %.1f reads\n", writes, calls("GET"))
	fmt.Printf("  %6d MiB resident at most; %.1f s of processor time\n", peak(b, w.Programs.Relay.PID())>>10, after.Sum("process_cpu_seconds_total")-before.Sum("process_cpu_seconds_total"))
	b.ReportMetric(took.Seconds()/ideal.Seconds(), "×ideal")
	b.ReportMetric(writes, "writes/run")
	if begun := len(scripts(b, w.hosts)); begun != n {
		b.Fatalf("%d scripts of %d runs", begun, n)
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

// peak is the largest resident size of a process, in KiB.
func peak(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
			return kib
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
