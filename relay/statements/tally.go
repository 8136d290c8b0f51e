package statements

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// Metrics count hosts and statements. Labels have few values: four states, and the kinds.
type Metrics struct {
	hosts   *prometheus.GaugeVec
	serial  *prometheus.GaugeVec
	refused prometheus.Gauge
	expiry  prometheus.Gauge
}

// NewMetrics registers them.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		hosts: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hostwarrant_hosts", Help: "SSHHosts by what they know of the roots' statements: current, behind, unsupported, unreachable.",
		}, []string{"state"}),
		serial: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "hostwarrant_statement_serial", Help: "The highest serial of each kind that the roots vouch for.",
		}, []string{"kind"}),
		refused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hostwarrant_statements_refused", Help: "Stored HostStatements that the roots in force do not vouch for.",
		}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hostwarrant_signers_expiry_timestamp_seconds", Help: "When the first of the newest signers statements expires on hosts; 0 where there is none.",
		}),
	}
	for _, c := range []prometheus.Collector{m.hosts, m.serial, m.refused, m.expiry} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// count is how far a statement got.
type count struct{ hosts, applied, refused int32 }

// tally counts hosts by state, and the hosts of each word.
func (m *memory) tally(words verify.Words) (states map[string]int, counts map[string]count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	states, counts = map[string]int{"current": 0, "behind": 0, "unsupported": 0, "unreachable": 0}, map[string]count{}
	for _, h := range m.hosts {
		states[h.state(words)]++
		known := h.guess()
		for _, w := range words.All {
			if !h.place.Holds(w.Statement) {
				continue
			}
			c := counts[w.Name]
			c.hosts++
			if known[w.Kind] >= w.Serial {
				c.applied++
			} else if _, refused := h.refused[digest(w.Signed.Text)]; refused || !h.otherShim().IsZero() {
				c.refused++
			}
			counts[w.Name] = c
		}
	}
	return states, counts
}

func (h *host) state(words verify.Words) string {
	switch {
	case h.tried.result != "" && h.tried.result != delivery.Applied:
		return "unreachable"
	case h.seen && len(h.behind(words)) == 0:
		return "current"
	case !h.otherShim().IsZero():
		return "unsupported"
	default:
		return "behind"
	}
}

// Tally writes how far each statement got, and the metrics; it makes no write where nothing changed.
func (c *Courier) Tally(ctx context.Context) error {
	words, _, err := c.Source.Words(ctx)
	if err != nil {
		return err
	}
	states, counts := c.memory.tally(words)
	c.Metrics.show(words, states)
	for _, w := range words.All {
		if err := c.tell(ctx, w.Name, func(s *v1alpha1.HostStatementStatus, generation int64) {
			verifiedStatus(s, w, counts[w.Name], generation, c.Now())
		}); err != nil {
			return err
		}
	}
	for name, d := range words.Refused {
		if err := c.tell(ctx, name, func(s *v1alpha1.HostStatementStatus, generation int64) { refuseStatus(s, d, generation, c.Now()) }); err != nil {
			return err
		}
	}
	return nil
}

func (m *Metrics) show(words verify.Words, states map[string]int) {
	if m == nil {
		return
	}
	for state, n := range states {
		m.hosts.WithLabelValues(state).Set(float64(n))
	}
	expiry := int64(0)
	newest := map[statement.Kind]int64{}
	for _, w := range words.All {
		newest[w.Kind] = max(newest[w.Kind], w.Serial)
		if w.Signers != nil { // the last ones are the newest
			expiry = w.Signers.Expires
		}
	}
	for _, kind := range statement.Kinds() {
		m.serial.WithLabelValues(string(kind)).Set(float64(newest[kind]))
	}
	m.refused.Set(float64(len(words.Refused)))
	m.expiry.Set(float64(expiry))
}

// verifiedStatus is the status of a statement that the roots vouch for.
func verifiedStatus(s *v1alpha1.HostStatementStatus, w verify.Word, n count, generation int64, now time.Time) {
	s.Kind, s.Serial = string(w.Kind), &w.Serial
	s.Hosts, s.Applied, s.Refused = n.hosts, n.applied, n.refused
	meta.SetStatusCondition(&s.Conditions, stamped(metav1.Condition{
		Type: v1alpha1.ConditionVerified, Status: metav1.ConditionTrue, Reason: string(decision.Verified), Message: "the roots vouch for it",
	}, generation, now))
	delivered := metav1.Condition{Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionTrue, Reason: "Applied", Message: "every host that it is for knows it"}
	if n.applied < n.hosts {
		delivered.Status, delivered.Reason = metav1.ConditionFalse, reasonBehind
		delivered.Message = fmt.Sprintf("%d of %d hosts know it; kubectl get hoststates -A", n.applied, n.hosts)
	}
	meta.SetStatusCondition(&s.Conditions, stamped(delivered, generation, now))
}

// refuseStatus is that of one that they do not vouch for.
func refuseStatus(s *v1alpha1.HostStatementStatus, d decision.Decision, generation int64, now time.Time) {
	s.Hosts, s.Applied, s.Refused = 0, 0, 0
	meta.SetStatusCondition(&s.Conditions, stamped(metav1.Condition{
		Type: v1alpha1.ConditionVerified, Status: metav1.ConditionFalse, Reason: string(d.Reason), Message: d.Message(),
	}, generation, now))
	meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionDelivered)
}

func (c *Courier) tell(ctx context.Context, name string, change func(*v1alpha1.HostStatementStatus, int64)) error {
	var h v1alpha1.HostStatement
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, &h); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := *h.Status.DeepCopy()
	change(&h.Status, h.Generation)
	h.Status.ObservedGeneration = h.Generation
	if equality.Semantic.DeepEqual(before, h.Status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, &h); err != nil {
		return fmt.Errorf("writing the status of HostStatement %q: %w", name, err)
	}
	return nil
}
