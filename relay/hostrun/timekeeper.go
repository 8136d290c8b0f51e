package hostrun

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// Timekeeper does what needs no host, and so must not wait for one: it ends runs
// that were cancelled, deleted or out of time before they were sent, and deletes
// those whose time to live is over.
type Timekeeper struct{ Reconciler *Reconciler }

// Setup registers the controller.
func (k Timekeeper) Setup(m ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(m).
		Named("hostrun-times").
		For(&v1alpha1.HostRun{}, builder.WithPredicates(dates{})).
		Complete(k)
	if err != nil {
		return fmt.Errorf("setting up the controller of HostRuns' times: %w", err)
	}
	return nil
}

// Reconcile does what is due for one run, and says when it is to be looked at again.
func (k Timekeeper) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r := k.Reconciler
	var run v1alpha1.HostRun
	if err := r.Client.Get(ctx, request.NamespacedName, &run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	due := dueAt(&run)
	if due.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := due.Sub(r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	// What is due by the cache must be so by what is stored.
	if err := r.Reader.Get(ctx, request.NamespacedName, &run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	due = dueAt(&run)
	switch {
	case due.IsZero():
		return ctrl.Result{}, nil
	case due.After(r.Now()):
		return ctrl.Result{RequeueAfter: due.Sub(r.Now())}, nil
	case isFinished(&run):
		same := client.Preconditions{UID: &run.UID}
		return ctrl.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, &run, same))
	default:
		return ctrl.Result{}, k.endUnsent(ctx, &run)
	}
}

// endUnsent ends a run that was not sent. A run that is being sent at this moment
// has a newer version: one of both writes fails, and it is sent or ended, never both.
func (k Timekeeper) endUnsent(ctx context.Context, run *v1alpha1.HostRun) error {
	why := k.Reconciler.outOfTime(run)
	if why == nil {
		return nil
	}
	finish(run, metav1.ConditionFalse, why.Reason, why.Message, k.Reconciler.Now())
	if err := k.Reconciler.Client.Status().Update(ctx, run); err != nil {
		return client.IgnoreNotFound(err)
	}
	k.Reconciler.ended(ctx, run)
	return nil
}

// dueAt is when something is to be done without its host, zero where nothing is.
func dueAt(run *v1alpha1.HostRun) time.Time {
	switch {
	case isFinished(run):
		ttl, end := run.Spec.TTLSecondsAfterFinished, run.Status.FinishedAt
		if ttl == nil || end == nil || run.DeletionTimestamp != nil {
			return time.Time{}
		}
		return end.Add(time.Duration(*ttl) * time.Second)
	case wasSent(run):
		return time.Time{} // its host is asked first
	case withdrawn(run) != "":
		return run.CreationTimestamp.Time
	default:
		return deadline(run)
	}
}

// dates lets through what changes when something is due.
type dates struct{ predicate.Funcs }

// Update is of interest when the spec changed, the run was deleted or has ended, or is no longer with its host.
func (dates) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.HostRun)
	after, ok2 := e.ObjectNew.(*v1alpha1.HostRun)
	return ok && ok2 && (before.Generation != after.Generation || !dueAt(before).Equal(dueAt(after)))
}

// Delete is of none.
func (dates) Delete(event.DeleteEvent) bool { return false }
