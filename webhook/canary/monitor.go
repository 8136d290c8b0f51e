package canary

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// ConditionAdmissionInPath says whether the webhook is asked about every guarded kind, by every API
// server, as it was shipped.
const ConditionAdmissionInPath = "AdmissionInPath"

// againAfter is how soon one looks again while the webhook is not in the path; it is no longer than
// the interval.
const againAfter = 10 * time.Second

// Monitor sends canaries, compares configurations, and tells what it finds.
type Monitor struct {
	Probe func(context.Context) ([]Outcome, error)
	Drift func(context.Context) ([]drift.Difference, error)
	// Set writes a condition of the trust policy, and reports whether status or reason changed.
	Set     func(context.Context, metav1.Condition) (changed, wrote bool, err error)
	Warning func(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
	Normal  func(ctx context.Context, about corev1.ObjectReference, reason, message string) bool
	Metrics *Metrics
	Log     *slog.Logger
	// Interval is how often, with a jitter of a fifth.
	Interval time.Duration

	last string // what was logged
}

// NeedLeaderElection says that one replica sends canaries.
func (m *Monitor) NeedLeaderElection() bool { return true }

// Start looks at once, and then every Interval, until ctx ends.
func (m *Monitor) Start(ctx context.Context) error {
	for {
		in := m.Round(ctx)
		wait := m.Interval
		if !in {
			wait = min(wait, againAfter)
		}
		wait += time.Duration(rand.Int64N(int64(wait)/5+1)) - wait/10
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// cause is why the webhook is not in the path.
type cause struct{ reason, what string }

// Round looks once, and reports whether the webhook is in the path.
func (m *Monitor) Round(ctx context.Context) bool {
	outcomes, probeErr := m.Probe(ctx)
	differences, driftErr := m.Drift(ctx)
	if ctx.Err() != nil {
		return true // leaving
	}
	m.Metrics.seen(outcomes, probeErr == nil)
	if driftErr == nil {
		m.Metrics.drift.Set(float64(len(differences)))
	}
	var causes []cause
	for _, d := range differences {
		reason := "ConfigurationDrift"
		if d.What == drift.Missing {
			reason = "ConfigurationMissing"
		}
		causes = append(causes, cause{reason, d.String()})
	}
	var elsewhere []string
	for _, o := range outcomes {
		if o.Result == Aggregated {
			elsewhere = append(elsewhere, fmt.Sprintf("%s %s (by %s)", o.Name, o.Version, o.Endpoint))
			continue
		}
		if o.Result != Seen {
			causes = append(causes, cause{o.Result.Reason(), fmt.Sprintf("%s %s at %s: %s", o.Name, o.Version, o.Endpoint, o.What)})
		}
	}
	for _, err := range []error{probeErr, driftErr} {
		if err != nil {
			causes = append(causes, cause{"Unknown", err.Error()})
		}
	}
	m.tell(ctx, condition(causes, len(outcomes)-len(elsewhere), elsewhere))
	return len(causes) == 0
}

// maxCauses bounds how many causes a condition names.
const maxCauses = 8

// condition is AdmissionInPath for these causes. Kinds that are served elsewhere are no cause: there
// is no webhook to be in the path of, and what is stored is judged by the controller. Nor are they
// passed over: the reason is another one, so that a kind that moves is told.
func condition(causes []cause, canaries int, elsewhere []string) metav1.Condition {
	c := metav1.Condition{
		Type: ConditionAdmissionInPath, Status: metav1.ConditionTrue, Reason: "CanariesRefused",
		Message: fmt.Sprintf("%d canaries were refused by the webhook, and nothing differs from what is shipped", canaries),
	}
	if len(elsewhere) > 0 {
		c.Reason = "CanariesRefusedOthersAggregated"
		c.Message += "; served by aggregated API servers, which ask no webhook: " + strings.Join(elsewhere, ", ")
	}
	if len(causes) == 0 {
		return c
	}
	// What was stored, or admitted, is worse than what could not be asked.
	rank := []string{"CanaryStored", "NotAsked", "ConfigurationMissing", "ConfigurationDrift", "Unexpected", "Unreachable", "Unknown"}
	slices.SortStableFunc(causes, func(a, b cause) int {
		return cmp.Compare(slices.Index(rank, a.reason), slices.Index(rank, b.reason))
	})
	c.Status, c.Reason = metav1.ConditionFalse, causes[0].reason
	var parts []string
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		parts = append(parts, cause.what)
	}
	if more := len(causes) - maxCauses; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	c.Message = strings.Join(parts, "; ")
	return c
}

// tell writes condition, event and log on a transition.
func (m *Monitor) tell(ctx context.Context, c metav1.Condition) {
	changed, _, err := m.Set(ctx, c)
	if err != nil {
		m.Log.Warn("writing a condition of the trust policy", "condition", c.Type, "error", err)
	}
	about := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: object.KindTrustPolicy, Name: v1alpha1.TrustPolicyName}
	state := string(c.Status) + " " + c.Reason
	if !changed && state == m.last {
		return
	}
	m.last = state
	if c.Status == metav1.ConditionTrue {
		m.Log.Info("admission is in the path", "message", c.Message)
		if changed {
			m.Normal(ctx, about, c.Reason, "admission is in the path: "+c.Message)
		}
		return
	}
	m.Log.Error("admission is not shown to be in the path", "reason", c.Reason, "message", c.Message)
	m.Warning(ctx, about, c.Reason, "admission is not shown to be in the path: "+c.Message)
}
