package bundles

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of bundles and rules. Label values come from closed sets: no bundle and no object
// is named.
type Metrics struct {
	bundles  *prometheus.GaugeVec
	members  prometheus.Gauge
	refusals *prometheus.GaugeVec
	missing  prometheus.Gauge
	reads    *prometheus.CounterVec
	seconds  prometheus.Histogram
	repaired prometheus.Counter
	repair   prometheus.Histogram
	rules    *prometheus.GaugeVec
	noRules  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: "hostwarrant_" + name, Help: help}
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "hostwarrant_" + name, Help: help}
	}
	m := &Metrics{
		bundles:  prometheus.NewGaugeVec(gauge("bundles", "Bundles by what became of them: assembled, kept (the last composite), absent (no composite), blocked (it cannot be stored)."), []string{"state"}),
		members:  prometheus.NewGauge(gauge("bundle_members", "Fragments that composites are made of.")),
		refusals: prometheus.NewGaugeVec(gauge("bundle_refusals", "Objects that carry a bundle's labels or a member's name and are no members, by reason."), []string{"reason"}),
		missing:  prometheus.NewGauge(gauge("bundle_missing_members", "Members that the trust policy requires and that are not there.")),
		reads:    prometheus.NewCounterVec(counter("bundle_reads_total", "Objects that were read to be judged: read or failed."), []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hostwarrant_bundle_seconds", Help: "Time from looking at a bundle to its composite being stored.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14), // 5 ms to 41 s: ten thousand fragments are read in half a minute
		}),
		repaired: prometheus.NewCounter(counter("bundle_drift_repaired_total", "Foreign changes of composites that were undone.")),
		repair: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hostwarrant_bundle_drift_seconds", Help: "Time from seeing a foreign change of a composite to its being undone.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
		rules:   prometheus.NewGaugeVec(gauge("rules", "Stored Rules and RuntimeRuleAlertBindings by kind, verdict and reason."), []string{"kind", "verdict", "reason"}),
		noRules: prometheus.NewGauge(gauge("rules_nothing_admitted", "1 while the trust policy has rule classes and no stored Rules may take effect: detection is off.")),
	}
	for _, c := range []prometheus.Collector{m.bundles, m.members, m.refusals, m.missing, m.reads, m.seconds, m.repaired, m.repair, m.rules, m.noRules} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) read(result string) { m.reads.WithLabelValues(result).Inc() }

func (m *Metrics) drift(took time.Duration) {
	m.repaired.Inc()
	m.repair.Observe(took.Seconds())
}
