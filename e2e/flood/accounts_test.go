//go:build linux

package flood

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// account is what was used and asked for up to a moment.
type account struct {
	at         time.Time
	relay, api harness.Metrics
	processor  map[string]time.Duration // by program
	machine    time.Duration
	connected  int // to hosts
}

func (w *world) account(t testing.TB) account {
	t.Helper()
	a := account{at: time.Now(), processor: map[string]time.Duration{}}
	for _, p := range w.Lab.Programs() {
		a.processor[p.Name] += p.ProcessorTime(t)
	}
	a.processor["this test"] = own(t)
	a.machine = lab.MachineTime(t)
	for _, line := range lines(t, w.hosts) {
		if line == connected {
			a.connected++
		}
	}
	var err error
	a.relay, err = harness.ReadMetrics(t.Context(), w.Programs.Relay.Metrics)
	must(t, err)
	page, err := w.ControlPlane.Client().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	a.api = harness.ParseMetrics(string(page))
	return a
}

// own is the processor time of this process.
func own(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// use is what happened between two moments.
type use struct{ before, after account }

func (u use) took() time.Duration { return u.after.at.Sub(u.before.at) }

// calls are those that the relay made to the API server.
func (u use) calls(methods ...string) float64 {
	sum := 0.0
	for _, method := range methods {
		label := `method="` + method + `"`
		sum += u.after.relay.Sum("rest_client_requests_total", label) - u.before.relay.Sum("rest_client_requests_total", label)
	}
	return sum
}

// ours is the processor time of all programs that the test started, and its own.
func (u use) ours() time.Duration {
	sum := time.Duration(0)
	for name, at := range u.after.processor {
		sum += at - u.before.processor[name]
	}
	return sum
}

// processors tells who used how much, most first.
func (u use) processors() string {
	used := map[string]time.Duration{}
	for name, at := range u.after.processor {
		used[name] = at - u.before.processor[name]
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return int(used[b] - used[a]) })
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.1f", name, used[name].Seconds()))
	}
	others := u.after.machine - u.before.machine - u.ours()
	had := u.took() * time.Duration(runtime.NumCPU())
	return fmt.Sprintf("%s; other programs %.1f; of %.1f", strings.Join(parts, ", "), others.Seconds(), had.Seconds())
}

// requests tells what the API server was asked for, by all, a run: what is asked less than once in twenty runs is left out.
func (u use) requests(n int) string {
	counts := map[string]float64{}
	for series, value := range u.after.api {
		labels, ok := strings.CutPrefix(series, "apiserver_request_total{")
		if !ok {
			continue
		}
		what := strings.ToLower(label(labels, "verb")) + " " + label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			what += "/" + sub
		}
		counts[what] += (value - u.before.api[series]) / float64(n)
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if counts[what] >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.1f", what, counts[what]))
		}
	}
	return strings.Join(parts, ", ")
}

// label is the value of a label of a series.
func label(labels, name string) string {
	_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
