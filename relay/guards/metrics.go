package guards

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hostwarrant/hostwarrant/internal/drift"
)

// Metrics show which guards are not as shipped. Label values are the names of what is shipped.
type Metrics struct {
	drift *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{drift: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "hostwarrant_guard_drift",
		Help: "1 while a webhook configuration, policy or binding of ours is missing, is not as shipped, or cannot be read; else 0. Only the relay that leads looks.",
	}, []string{"object"})}
	return m, r.Register(m.drift)
}

func (m *Metrics) seen(o drift.Object, asShipped bool) {
	value := 1.0
	if asShipped {
		value = 0
	}
	m.drift.WithLabelValues(o.String()).Set(value)
}
