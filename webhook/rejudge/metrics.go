package rejudge

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of re-judgement. Label values come from closed sets.
type Metrics struct {
	stored  *prometheus.GaugeVec
	reads   prometheus.Counter
	writes  prometheus.Counter
	seconds prometheus.Histogram
	lost    prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		stored: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hostwarrant_objects", Help: "Stored objects by kind, verdict (verified, excused, refused) in enforce terms, and reason.",
		}, []string{"kind", "verdict", "reason"}),
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hostwarrant_rejudgement_reads_total", Help: "Stored objects that were read to be judged again.",
		}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hostwarrant_rejudgement_writes_total", Help: "Writes to the API server that came of judging again: events, conditions, reports, ledger, refreshed lists.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hostwarrant_rejudgement_seconds", Help: "Time of one scan of all stored objects.",
			// 0.1 s to 205 s: a thousand profiles and a thousand hosts are to take less than a minute.
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 12),
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hostwarrant_ledger_rebuilt_total", Help: "How often the ledger, or records of it, were missing or lowered, and were written again.",
		}),
	}
	for _, c := range []prometheus.Collector{m.stored, m.reads, m.writes, m.seconds, m.lost} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) scanned(f Figures) {
	m.reads.Add(float64(f.Reads))
	m.writes.Add(float64(f.Writes))
	m.seconds.Observe(f.Took.Seconds())
}

func (m *Metrics) objects(counts map[group]int) {
	m.stored.Reset()
	for g, n := range counts {
		m.stored.WithLabelValues(g.kind, g.word, string(g.reason)).Set(float64(n))
	}
}

func (m *Metrics) rebuilt() { m.lost.Inc() }
