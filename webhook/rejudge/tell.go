package rejudge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// The conditions of the trust policy that a Scanner writes.
const (
	// ConditionObjectsVerified says whether every stored object verifies, or is excused.
	ConditionObjectsVerified = "ObjectsVerified"
	// ConditionLedgerIntact says whether the ledger holds what is in force, and was not lost.
	ConditionLedgerIntact = "LedgerIntact"
)

// writers bounds how many events are written at once.
const writers = 8

// tell writes an event for each transition, and returns how many were stored.
func (c *Scanner) tell(ctx context.Context, changed []transition) int {
	var stored atomic.Int64
	var all sync.WaitGroup
	work := make(chan transition)
	for range min(writers, len(changed)) {
		all.Go(func() {
			for t := range work {
				if c.event(ctx, t) {
					stored.Add(1)
				}
			}
		})
	}
	for _, t := range changed {
		work <- t
	}
	close(work)
	all.Wait()
	return int(stored.Load())
}

func (c *Scanner) event(ctx context.Context, t transition) bool {
	about := corev1.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name, UID: types.UID(t.UID)}
	if t.recovered {
		return c.Events.Normal(ctx, about, string(t.Decision.Reason), "the stored object verifies: "+t.Decision.Message())
	}
	message := "the stored object does not verify: " + t.Decision.Message()
	if t.Excused {
		message = "the stored object does not verify, and the policy excuses it until a date: " + t.Decision.Message()
	}
	return c.Events.Warning(ctx, about, string(t.Decision.Reason), message)
}

// alarm tells of something that concerns the policy or the ledger.
func (c *Scanner) alarm(ctx context.Context, reason, message string) {
	c.Log.Error(message, "reason", reason)
	c.Events.Warning(ctx, PolicyReference(), reason, message)
}

// PolicyReference is what events about the policy and the ledger are about.
func PolicyReference() corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: object.KindTrustPolicy, Name: v1alpha1.TrustPolicyName}
}

func (c *Scanner) condition(ctx context.Context, condition metav1.Condition) bool {
	_, wrote, err := c.Conditions.Set(ctx, condition)
	if err != nil {
		c.Log.Warn("writing a condition of the trust policy", "condition", condition.Type, "error", err)
	}
	return wrote
}

// sum shows all verdicts together: gauges, condition and report. It returns how often it wrote.
func (c *Scanner) sum(ctx context.Context, s verify.Snapshot, f *Figures, until *time.Time) (writes int) {
	all := c.verdicts.all()
	c.Metrics.objects(count(all))
	for _, v := range all {
		*until = earliest(s.Now, *until, v.until)
		if v.Refused() {
			f.Refused++
		}
	}
	*until = earliest(s.Now, *until, policyTimes(s.Policy)...)
	if c.condition(ctx, verified(all, f.Refused)) {
		writes++
	}
	wrote, err := c.Report.Write(ctx, all, s.Now)
	if err != nil {
		c.Log.Warn("writing the report", "error", err)
	}
	if wrote {
		writes++
	}
	return writes
}

// verified is the condition ObjectsVerified.
func verified(all []Verdict, refused int) metav1.Condition {
	condition := metav1.Condition{Type: ConditionObjectsVerified, Status: metav1.ConditionTrue, Reason: string(decision.Verified)}
	if refused > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, "ObjectsRefused"
	}
	counts := count(all)
	var parts []string
	for g, n := range counts {
		if g.word != "verified" {
			parts = append(parts, fmt.Sprintf("%d %s %s (%s)", n, g.kind, g.word, g.reason))
		}
	}
	slices.Sort(parts)
	condition.Message = fmt.Sprintf("%d of %d stored objects do not verify", refused, len(all))
	if len(parts) > 0 {
		condition.Message += ": " + strings.Join(parts, ", ") + "; see events and metric hostwarrant_objects"
	}
	return condition
}

// unknown says, once, that nothing can be judged at all.
func (c *Scanner) unknown(ctx context.Context, err error) {
	e := decision.From(err)
	if c.lastUnknown == e.Error() {
		return
	}
	c.lastUnknown = e.Error()
	c.Log.Warn("stored objects cannot be judged", "reason", e.Reason, "error", e.Error())
	c.condition(ctx, metav1.Condition{Type: ConditionObjectsVerified, Status: metav1.ConditionUnknown, Reason: string(e.Reason), Message: e.Error()})
}
