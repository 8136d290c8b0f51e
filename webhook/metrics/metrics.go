// Package metrics counts decisions and describes the policy in force.
//
// Label values come from closed sets, so that nobody can fill memory by naming objects: kinds that
// are not judged count as "other", and reasons are those of docs/spec/reasons.md. Nothing here
// takes part in a decision.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Metrics implements admit.Recorder and policy.Observer.
type Metrics struct {
	decisions *prometheus.CounterVec
	seconds   prometheus.Histogram
	version   prometheus.Gauge
	expiry    prometheus.Gauge
	refused   prometheus.Counter
}

// New registers the metrics.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hostwarrant_decisions_total",
			Help: "Admission decisions by kind, outcome (allow, deny, warn, exempt) and reason. Dry runs are not counted.",
		}, []string{"kind", "outcome", "reason"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hostwarrant_decision_seconds",
			Help: "Time to judge one request, dry runs included.",
			// 1 ms to 4 s: the API server waits five.
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
		}),
		version: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hostwarrant_policy_version", Help: "Version of the trust policy in force; 0 while there is none.",
		}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hostwarrant_policy_expiry_timestamp_seconds", Help: "When the trust policy in force expires; 0 while there is none.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hostwarrant_policy_reload_refused_total", Help: "Trust policies that were refused; what was in force stayed.",
		}),
	}
	for _, c := range []prometheus.Collector{m.decisions, m.seconds, m.version, m.expiry, m.refused} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Decided counts one decision.
func (m *Metrics) Decided(kind, outcome string, reason decision.Reason, took time.Duration, dryRun bool) {
	m.seconds.Observe(took.Seconds())
	if dryRun {
		return
	}
	switch kind {
	case object.KindJoinProfile, object.KindHost, object.KindTrustPolicy:
	default:
		kind = "other"
	}
	m.decisions.WithLabelValues(kind, outcome, string(reason)).Inc()
}

// PolicyLoaded describes the policy that is now in force.
func (m *Metrics) PolicyLoaded(p *trustpolicy.Policy) {
	m.version.Set(float64(p.Version))
	m.expiry.Set(float64(p.Expires.Unix()))
}

// PolicyRefused counts a refused policy.
func (m *Metrics) PolicyRefused(decision.Reason) { m.refused.Inc() }
