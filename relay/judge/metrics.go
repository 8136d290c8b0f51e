package judge

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Metrics shows what the program trusts. The label values are those of the one anchor that it was
// started with.
type Metrics struct {
	info    *prometheus.GaugeVec
	differs prometheus.Gauge
	version prometheus.Gauge
	expiry  prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &Metrics{
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hostwarrant_anchor_info",
			Help: "1, with the cluster id and the digest of the roots that this program was started with.",
		}, []string{"cluster_id", "digest"}),
		differs: gauge("hostwarrant_anchor_differs", "1 while the ledger pins another anchor than this program has."),
		version: gauge("hostwarrant_policy_version", "Version of the trust policy in force; 0 while there is none."),
		expiry:  gauge("hostwarrant_policy_expiry_timestamp_seconds", "When the trust policy in force expires; 0 while there is none."),
	}
	for _, c := range []prometheus.Collector{m.info, m.differs, m.version, m.expiry} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) anchor(a inforce.Anchor) { m.info.WithLabelValues(a.ClusterID, a.Digest).Set(1) }

func (m *Metrics) anchorDiffers(differs bool) {
	m.differs.Set(0)
	if differs {
		m.differs.Set(1)
	}
}

func (m *Metrics) policy(p *trustpolicy.Policy) {
	m.version.Set(float64(p.Version))
	m.expiry.Set(float64(p.Expires.Unix()))
}
