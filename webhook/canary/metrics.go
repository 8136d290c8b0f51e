package canary

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of canaries and drift. Label values come from closed sets.
type Metrics struct {
	inPath *prometheus.GaugeVec
	sent   *prometheus.CounterVec
	drift  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		inPath: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hostwarrant_admission_in_path", Help: "1 where every canary of the kind was refused by the webhook, else 0, as where an aggregated API server has the kind. Kinds that are not served are absent.",
		}, []string{"kind"}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hostwarrant_canaries_sent_total", Help: "Canaries by kind and result (seen, not-asked, unexpected, unreachable, stored).",
		}, []string{"kind", "result"}),
		drift: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hostwarrant_configuration_drift", Help: "Fields of live webhook configurations, policies and bindings that differ from what is shipped; a missing object counts once.",
		}),
	}
	for _, c := range []prometheus.Collector{m.inPath, m.sent, m.drift} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// seen counts outcomes. Where nothing could be found out, nothing is in the path that is known.
func (m *Metrics) seen(outcomes []Outcome, known bool) {
	m.inPath.Reset()
	if !known {
		for _, k := range Kinds() {
			m.inPath.WithLabelValues(k.Name).Set(0)
		}
		return
	}
	in := map[string]float64{}
	for _, o := range outcomes {
		if o.Result != Aggregated {
			m.sent.WithLabelValues(o.Name, string(o.Result)).Inc()
		}
		if _, ok := in[o.Name]; !ok {
			in[o.Name] = 1
		}
		if o.Result != Seen {
			in[o.Name] = 0
		}
	}
	for kind, value := range in {
		m.inPath.WithLabelValues(kind).Set(value)
	}
}
