package hostrun

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts finished runs, and shows who waits. Labels have few values: five phases, and the
// reasons of docs/spec/relay.md.
type Metrics struct {
	runs *prometheus.CounterVec
}

// NewMetrics registers the metrics of runs and of the line in which they wait.
func NewMetrics(r prometheus.Registerer, line *Line) (*Metrics, error) {
	m := &Metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hostwarrant_runs_total",
			Help: "HostRuns that ended, by phase and result.",
		}, []string{"phase", "result"}),
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	for _, c := range []prometheus.Collector{
		m.runs,
		gauge("hostwarrant_turns_waiting", "Runs and statements that wait for their host or for one of --concurrent-hosts.", line.Len),
		gauge("hostwarrant_hosts_in_use", "Hosts that runs or statements hold at the moment, of --concurrent-hosts.", line.InUse),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) ended(phase, result string) { m.runs.WithLabelValues(phase, result).Inc() }
