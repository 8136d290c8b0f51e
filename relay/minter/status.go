package minter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/relay/token"
)

// maxMessage is far above what is written; anything longer comes from outside.
const maxMessage = 1024

func joined(run *v1alpha1.HostRun) *metav1.Condition {
	return meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionJoined)
}

// isFinal: the run gets no token any more.
func isFinal(run *v1alpha1.HostRun) bool {
	c := joined(run)
	return c != nil && c.Status != metav1.ConditionUnknown
}

func hasFinalizer(run *v1alpha1.HostRun) bool {
	return slices.Contains(run.Finalizers, token.Finalizer)
}

// issued: both Secrets of the run's token were made, and it was not taken away.
func issued(run *v1alpha1.HostRun) bool {
	return token.Usable(joined(run)) && hasFinalizer(run) && token.IsID(run.Status.TokenID)
}

// isOver: the run has ended.
func isOver(run *v1alpha1.HostRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// wasSent: the host may have the token.
func wasSent(run *v1alpha1.HostRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionDelivered)
	return c != nil && c.Status != metav1.ConditionFalse
}

// awaits: the relay says that the run is next and needs a token. All else that it says counts for nothing.
func awaits(run *v1alpha1.HostRun) bool {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionDelivered)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == token.Pending && !run.Spec.Cancel && run.DeletionTimestamp == nil
}

// write changes the minter's part of the status. It fails where somebody changed the run meanwhile.
func (m *Minter) write(ctx context.Context, run *v1alpha1.HostRun, change func(*v1alpha1.HostRunStatus)) error {
	before := run.DeepCopy()
	change(&run.Status)
	err := m.Client.Status().Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// say sets the condition Joined.
func say(s *v1alpha1.HostRunStatus, generation int64, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionJoined, Status: status, Reason: reason, Message: fitting(message),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// fitting is a message as it is written.
func fitting(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "?")
}

// finalize adds the finalizer, or takes it away.
func (m *Minter) finalize(ctx context.Context, run *v1alpha1.HostRun, on bool) error {
	before := run.DeepCopy()
	var changed bool
	if on {
		changed = controllerutil.AddFinalizer(run, token.Finalizer)
	} else {
		changed = controllerutil.RemoveFinalizer(run, token.Finalizer)
	}
	if !changed {
		return nil
	}
	err := m.Client.Patch(ctx, run, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if !on {
		err = client.IgnoreNotFound(err)
	}
	return wrap(err, "writing the finalizer")
}
