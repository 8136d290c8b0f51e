// Package metrics counts decisions and describes the policy in force.
//
// Label values come from closed sets, so that nobody can fill memory by naming objects: kinds that
// are not judged count as "other", and reasons are those of docs/spec/reasons.md. Nothing here
// takes part in a decision.
package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Metrics implements admit.Recorder and policy.Observer.
type Metrics struct {
	decisions *prometheus.CounterVec
	canary    *prometheus.CounterVec
	unread    *prometheus.CounterVec
	seconds   prometheus.Histogram
	version   prometheus.Gauge
	expiry    prometheus.Gauge
	left      prometheus.GaugeFunc
	refused   prometheus.Counter
	differs   prometheus.Gauge

	now     func() time.Time
	expires atomic.Pointer[time.Time]
}

// New registers the metrics.
func New(registry prometheus.Registerer, now func() time.Time) (*Metrics, error) {
	m := &Metrics{
		now: now,
		decisions: counters("decisions_total", "Admission decisions by kind, outcome (allow, deny, warn, exempt, waive) and reason. Dry runs and canaries are not counted.",
			"kind", "outcome", "reason"),
		canary: counters("canary_total", "Canaries that were refused, as they must be, by kind.", "kind"),
		unread: counters("reviews_unread_total", "Requests that were refused before anything was judged, by reason.", "reason"),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "decision_seconds",
			Help: "Time to judge one request, dry runs included.",
			// 1 ms to 4 s: the API server waits five.
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
		}),
		version: gauge("policy_version", "Version of the trust policy in force; 0 while there is none."),
		expiry:  gauge("policy_expiry_timestamp_seconds", "When the trust policy in force expires; 0 while there is none."),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "policy_reload_refused_total", Help: "Trust policies that were refused, once for the same content; what was in force stayed.",
		}),
		differs: gauge("anchor_differs", "1 while the ledger pins another anchor than this program has."),
	}
	m.left = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "policy_expires_in_seconds", Help: "Time until the trust policy in force expires, negative once it did; 0 while there is none.",
	}, m.expiresIn)
	for _, c := range []prometheus.Collector{m.decisions, m.canary, m.unread, m.seconds, m.version, m.expiry, m.left, m.refused, m.differs} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

const prefix = "hostwarrant_"

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
}

// Decided counts one decision.
func (m *Metrics) Decided(kind, outcome string, reason decision.Reason, took time.Duration, dryRun bool) {
	m.seconds.Observe(took.Seconds())
	if dryRun {
		return
	}
	m.decisions.WithLabelValues(bounded(kind), outcome, string(reason)).Inc()
}

// bounded is the kind where it is one that is judged: others could be named by anybody.
func bounded(kind string) string {
	if kind == object.KindTrustPolicy || slices.Contains(verify.Kinds(), kind) {
		return kind
	}
	return "other"
}

// Canary counts a canary that was refused.
func (m *Metrics) Canary(kind string) { m.canary.WithLabelValues(bounded(kind)).Inc() }

// Unread counts a request that was refused before anything was judged.
func (m *Metrics) Unread(reason decision.Reason) { m.unread.WithLabelValues(string(reason)).Inc() }

// PolicyLoaded describes the policy that is now in force.
func (m *Metrics) PolicyLoaded(p *trustpolicy.Policy) {
	m.version.Set(float64(p.Version))
	m.expiry.Set(float64(p.Expires.Unix()))
	m.expires.Store(&p.Expires)
}

func (m *Metrics) expiresIn() float64 {
	end := m.expires.Load()
	if end == nil {
		return 0
	}
	return end.Sub(m.now()).Truncate(time.Second).Seconds()
}

// PolicyRefused counts a refused policy.
func (m *Metrics) PolicyRefused(decision.Reason) { m.refused.Inc() }

// AnchorDiffers says whether the ledger pins another anchor.
func (m *Metrics) AnchorDiffers(differs bool) {
	m.differs.Set(0)
	if differs {
		m.differs.Set(1)
	}
}
