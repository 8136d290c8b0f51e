package approver

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts decisions and alarms. Label values are the reasons of docs/spec/join.md
// and docs/spec/reasons.md.
type Metrics struct {
	decisions *prometheus.CounterVec
	alarms    *prometheus.CounterVec
	skipped   prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hostwarrant_certificate_requests_total", Help: "Certificate requests decided, by outcome and reason."}, []string{"outcome", "reason"}),
		alarms:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hostwarrant_join_alarms_total", Help: "Uses of join tokens past the approver, by kind."}, []string{"kind"}),
		skipped:   prometheus.NewCounter(prometheus.CounterOpts{Name: "hostwarrant_proofs_skipped_total", Help: "Certificate requests approved without a proof."}),
	}
	for _, c := range []prometheus.Collector{m.decisions, m.alarms, m.skipped} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{reasonForeignApproval, reasonOtherSigner, reasonSecondRequest} {
		m.alarms.WithLabelValues(kind) // an alert on the first one needs a zero before it
	}
	return m, nil
}

func (m *Metrics) decided(outcome, reason string) {
	m.decisions.WithLabelValues(outcome, reason).Inc()
}

func (m *Metrics) alarm(kind string) { m.alarms.WithLabelValues(kind).Inc() }
