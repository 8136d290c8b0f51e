package policy

import (
	"context"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostwarrantv1alpha1 "github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// StatusReconciler writes the condition InForce of the TrustPolicy. Nobody decides by it: each
// program verifies the policy itself.
type StatusReconciler struct {
	Client client.Client
	Anchor Anchor
	Now    func() time.Time
}

// SetupWithManager watches the TrustPolicy.
func (r *StatusReconciler) SetupWithManager(m manager.Manager) error {
	return builder.ControllerManagedBy(m).Named("trustpolicy-status").For(stored()).Complete(r)
}

// Reconcile verifies the stored policy and writes the condition where it changed.
func (r *StatusReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := stored()
	if err := r.Client.Get(ctx, req.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return reconcile.Result{}, err
	}
	var typed hostwarrantv1alpha1.TrustPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &typed); err != nil {
		return reconcile.Result{}, err
	}
	was := typed.DeepCopy()
	condition, again := r.judge(raw)
	condition.ObservedGeneration = typed.Generation
	changed := apimeta.SetStatusCondition(&typed.Status.Conditions, condition)
	if !changed && typed.Status.ObservedGeneration == typed.Generation {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	typed.Status.ObservedGeneration = typed.Generation
	return reconcile.Result{RequeueAfter: again}, r.Client.Status().Patch(ctx, &typed, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})) // others write conditions too
}

// judge returns the condition, and when to look again although nobody wrote.
func (r *StatusReconciler) judge(raw []byte) (metav1.Condition, time.Duration) {
	now := r.Now()
	refused := func(d decision.Decision) metav1.Condition {
		return metav1.Condition{Type: hostwarrantv1alpha1.ConditionInForce, Status: metav1.ConditionFalse, Reason: string(d.Reason), Message: d.Message()}
	}
	t, err := object.ParseTrustPolicy(raw)
	if err != nil {
		return refused(decision.From(err).Denied(object.KindTrustPolicy, object.TrustPolicyName)), 0
	}
	p, d := verify.TrustPolicy(r.Anchor.Anchor, nil, t, now)
	if !d.Allowed() {
		return refused(d), time.Minute // it may not be valid yet
	}
	mode, again := string(p.Mode(now)), p.Expires.Sub(now)
	if p.Mode(now) == trustpolicy.Warn {
		mode += " until " + p.WarnUntil().Format(time.RFC3339)
		again = min(again, p.WarnUntil().Sub(now))
	}
	return metav1.Condition{
		Type: hostwarrantv1alpha1.ConditionInForce, Status: metav1.ConditionTrue, Reason: string(d.Reason),
		Message: fmt.Sprintf("version %d, mode %s, expires %s, %s", p.Version, mode, p.Expires.Format(time.RFC3339), p.Digest),
	}, min(again+time.Second, time.Hour)
}
