package minter

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts tokens. Label values are the reasons of docs/spec/join.md and docs/spec/reasons.md.
type Metrics struct {
	issued  prometheus.Counter
	ended   *prometheus.CounterVec
	refused *prometheus.CounterVec
	living  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		issued:  prometheus.NewCounter(prometheus.CounterOpts{Name: "hostwarrant_tokens_issued_total", Help: "Bootstrap tokens given to runs."}),
		ended:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hostwarrant_tokens_ended_total", Help: "Bootstrap tokens deleted, by reason."}, []string{"reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hostwarrant_tokens_refused_total", Help: "Runs that got no bootstrap token, by reason."}, []string{"reason"}),
		living:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "hostwarrant_tokens_living", Help: "Bootstrap tokens that are in use."}),
	}
	for _, c := range []prometheus.Collector{m.issued, m.ended, m.refused, m.living} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
