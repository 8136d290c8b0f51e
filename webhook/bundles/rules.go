package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
)

// ConditionRulesAdmitted is the condition of the trust policy that says whether any detection rule may
// take effect.
const ConditionRulesAdmitted = "RulesAdmitted"

// rulesState is what was told of Rules and bindings. One worker at a time has it.
type rulesState struct {
	reasons map[Key]decision.Reason // of those that may not take effect
	outage  time.Time               // when it was last said that nothing is admitted
	said    string                  // the condition that was written, and when
	saidAt  time.Time
}

// RuleCounts count Rules objects and what comes of them.
type RuleCounts struct {
	Admitted  int `json:"admitted"`
	Rejected  int `json:"rejected"`
	Effective int `json:"effective"`
}

// ruled is a stored object of Rules or of a binding, and what is thought of it.
type ruled struct {
	*facts
	fragment *fragment.Fragment
	refusal  *decision.Error
}

// lookAtRules judges all Rules and bindings, wherever they are stored: they take effect in the whole
// cluster. Nothing is undone; an agent that verifies nothing takes whatever is stored.
func (c *Controller) lookAtRules(ctx context.Context, s verify.Snapshot) (again bool, err error) {
	rules, failed := c.ruledBy(ctx, s, fragment.KindRules, len(s.Policy.RuleClasses) > 0)
	bindings, failedToo := c.ruledBy(ctx, s, fragment.KindRuleBinding, len(s.Policy.BindingClasses) > 0)
	marks := map[ledger.Slot]ledger.SlotMark{}
	var admitted []*fragment.Fragment
	for _, r := range slices.Concat(rules, bindings) {
		if r.refusal != nil || r.fragment == nil {
			continue
		}
		marks[ledger.SlotOf(r.Namespace, r.fragment)] = ledger.SlotMarkOf(r.fragment)
		if r.Kind == fragment.KindRules {
			admitted = append(admitted, r.fragment)
		}
	}
	if err := c.Ledger.RecordSlots(ctx, s, marks); err != nil {
		return false, fmt.Errorf("recording versions of rules: %w", err)
	}
	c.tellRuled(ctx, slices.Concat(rules, bindings))
	if len(s.Policy.RuleClasses) == 0 {
		return failed || failedToo, c.tellRules(ctx, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: "NotSigned", Message: "the trust policy has no rule classes: rules are not judged",
		}, RuleCounts{})
	}
	counts := RuleCounts{Admitted: len(admitted), Rejected: len(rules) - len(admitted)}
	set, err := bundle.Effective(admitted)
	if err != nil && !errors.Is(err, bundle.ErrNoRules) {
		return false, err
	}
	if set != nil {
		counts.Effective = effective(set)
	}
	if off := detectionOff(s.Policy, set, counts); off != "" {
		c.outage(ctx, counts, off)
		return failed || failedToo, c.tellRules(ctx, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: string(decision.MemberMissing), Message: off,
		}, counts)
	}
	c.healed(ctx)
	return failed || failedToo, c.tellRules(ctx, metav1.Condition{
		Status: metav1.ConditionTrue, Reason: "Admitted",
		Message: fmt.Sprintf("%d of %d Rules objects are admitted, with %d rules%s", counts.Admitted, len(rules), counts.Effective, contradictions(set)),
	}, counts)
}

// effective is how many rules there are over all scopes.
func effective(set *bundle.RuleSet) int {
	n := len(set.For(""))
	base := map[string]bool{}
	for _, rule := range set.For("") {
		base[rule.Rule.ID] = true
	}
	for _, name := range set.Bundles() {
		for _, rule := range set.For(name) {
			if rule.Bundle == name {
				n++
			}
		}
	}
	return n
}

// contradictions names base rules of one id that objects write differently.
func contradictions(set *bundle.RuleSet) string {
	if len(set.Conflicts) == 0 {
		return ""
	}
	var ids []string
	for _, conflict := range set.Conflicts[:min(len(set.Conflicts), 5)] {
		ids = append(ids, conflict.Key+" ("+conflict.Winner+" counts)")
	}
	return fmt.Sprintf("; %d are written differently by several objects: %s", len(set.Conflicts)+set.MoreConflicts, strings.Join(ids, ", "))
}

// ruledBy judges the objects of a kind, if the policy signs them at all.
func (c *Controller) ruledBy(ctx context.Context, s verify.Snapshot, kind string, signed bool) (all []ruled, failed bool) {
	if !signed {
		return nil, false
	}
	var read []*facts
	for _, f := range c.index.all(kind) {
		switch refusal := dropped(s.Policy, f); {
		case f.deleting:
		case refusal != nil:
			all = append(all, ruled{f, nil, refusal})
		default:
			read = append(read, f)
		}
	}
	found, failed := c.reader.candidates(ctx, s, read)
	byName := map[ID]bundle.Candidate{}
	for _, candidate := range found {
		byName[ID{candidate.Namespace, candidate.Name}] = candidate
	}
	for _, f := range read {
		candidate, ok := byName[ID{f.Namespace, f.Name}]
		if !ok {
			continue // it is gone
		}
		r := ruled{f, candidate.Fragment, candidate.Refusal}
		if r.refusal == nil {
			r.refusal = c.versionOf(s.Policy, f.Namespace, r.fragment)
		}
		all = append(all, r)
	}
	return all, failed
}

// versionOf says why a version may not take effect, or nil.
func (c *Controller) versionOf(p *trustpolicy.Policy, namespace string, f *fragment.Fragment) *decision.Error {
	slot, mark := ledger.SlotOf(namespace, f), ledger.SlotMarkOf(f)
	if r, ok := p.SlotResetOf(slot.String(), mark.Version, mark.Digest); ok && !c.Ledger.ResetUsed(r.ID()) {
		return nil
	}
	err := ledger.FirstSlot(mark)
	if seen, ok := c.Ledger.Slot(slot); ok {
		err = seen.Next(mark)
	}
	if err == nil {
		return nil
	}
	return decision.From(err)
}

// maxUnsignedTold bounds the events of one look about objects that nobody signed, which anybody can make
// by the thousand; the metric counts them all.
const maxUnsignedTold = 20

// tellRuled tells of objects whose verdict changed.
func (c *Controller) tellRuled(ctx context.Context, all []ruled) {
	unsigned := 0
	was := c.rules.reasons
	c.rules.reasons = map[Key]decision.Reason{}
	c.Metrics.rules.Reset()
	for _, r := range all {
		about := corev1.ObjectReference{APIVersion: fragment.APIVersionOf(r.Kind), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.uid)}
		if r.refusal == nil {
			c.Metrics.rules.WithLabelValues(r.Kind, "admitted", string(decision.Verified)).Inc()
			if was[r.Key] != "" {
				c.Events.Normal(ctx, about, string(decision.Verified), "the stored object may take effect again")
			}
			continue
		}
		c.Metrics.rules.WithLabelValues(r.Kind, "rejected", reasonOf(r.refusal)).Inc()
		c.rules.reasons[r.Key] = r.refusal.Reason
		if was[r.Key] == r.refusal.Reason || r.refusal.Reason == decision.SnapshotUnavailable {
			continue
		}
		if r.refusal.Reason == decision.Unsigned {
			unsigned++
		}
		if r.refusal.Reason != decision.Unsigned || unsigned <= maxUnsignedTold {
			c.Events.Warning(ctx, about, string(r.refusal.Reason), "the stored object may not take effect: "+r.refusal.Denied(r.Kind, r.Name).Message())
		}
	}
}

// detectionOff says for whom nothing is detected; "" where no pod is left without rules. A nil set has none.
func detectionOff(p *trustpolicy.Policy, set *bundle.RuleSet, counts RuleCounts) string {
	const look = "hint: kubectl get events -A --field-selector involvedObject.kind=Rules"
	if set == nil {
		return fmt.Sprintf("no Rules object is admitted, %d are rejected: detection is off for whoever takes signed rules alone; %s", counts.Rejected, look)
	}
	// check: MemberMissing: the overlay of one bundle must not hide that the rules of all other pods are gone
	if len(set.For("")) == 0 && known(p.RuleClasses, "base") {
		return fmt.Sprintf("no rules of class base are admitted, %d Rules objects are rejected: detection is off for pods of no bundle, and of bundles without rules of their own; %s",
			counts.Rejected, look)
	}
	return ""
}

// outage says that nothing is admitted, and says it again after each Interval.
func (c *Controller) outage(ctx context.Context, counts RuleCounts, off string) {
	c.Metrics.noRules.Set(1)
	now := c.Now()
	if due := c.rules.outage.Add(c.Interval); c.rules.outage.IsZero() || !now.Before(due) {
		c.rules.outage = now
		c.Log.Error("no rules are admitted: detection is off", "admitted", counts.Admitted, "rejected", counts.Rejected)
		c.Events.Warning(ctx, rejudge.PolicyReference(), "NoRulesAdmitted", off)
	}
	// Nothing needs to change for it to be said again. Each look asks for the next: the queue keeps the
	// soonest time alone.
	c.queue.AddAfter(item{rules: true}, c.rules.outage.Add(c.Interval).Sub(now))
}

func (c *Controller) healed(ctx context.Context) {
	c.Metrics.noRules.Set(0)
	if c.rules.outage.IsZero() {
		return
	}
	c.rules.outage = time.Time{}
	c.Events.Normal(ctx, rejudge.PolicyReference(), "RulesAdmitted", "rules are admitted again")
}

// tellRules writes the condition of the trust policy.
func (c *Controller) tellRules(ctx context.Context, condition metav1.Condition, counts RuleCounts) error {
	c.mu.Lock()
	c.ruleCounts = counts
	c.mu.Unlock()
	condition.Type = ConditionRulesAdmitted
	said := fmt.Sprint(condition.Status, condition.Reason, condition.Message)
	now := c.Now()
	if said == c.rules.said && now.Before(c.rules.saidAt.Add(c.Interval)) {
		return nil
	}
	if _, _, err := c.Conditions.Set(ctx, condition); err != nil {
		return fmt.Errorf("writing the condition %s: %w", ConditionRulesAdmitted, err)
	}
	c.rules.said, c.rules.saidAt = said, now
	return nil
}
