package hostrun

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts finished runs. Labels have few values: the phases, and the reasons of docs/spec/relay.md.
type Metrics struct {
	runs *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{runs: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hostwarrant_runs_total",
		Help: "HostRuns that ended, by phase and result.",
	}, []string{"phase", "result"})}
	return m, r.Register(m.runs)
}

func (m *Metrics) ended(phase, result string) { m.runs.WithLabelValues(phase, result).Inc() }
