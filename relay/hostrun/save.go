package hostrun

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// saving is how long, and how often, what came of a run is offered to an API server
// that does not answer: about a minute. Afterwards the host is asked again, which
// knows how the run ended, but not what it printed.
func saving() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10}
}

// save writes the status over any change that the spec saw meanwhile, tells of the
// condition kind, and says when to come back. What others wrote into the status stays.
func (r *Reconciler) save(ctx context.Context, run *v1alpha1.HostRun, kind string) (ctrl.Result, error) {
	written := false
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, saving(), func(ctx context.Context) (bool, error) {
		var over bool
		over, written, last = r.offer(ctx, run)
		if apierrors.IsInvalid(last) || apierrors.IsForbidden(last) {
			return false, last // it will not be otherwise the next time
		}
		return over, nil
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status: %w, last: %v", err, last)
	}
	if !written {
		return ctrl.Result{}, nil
	}
	r.tell(run, kind)
	if isFinished(run) {
		r.logEnd(ctx, run)
		return ctrl.Result{}, nil
	}
	return r.later(run, condition(run, kind).Reason), nil
}

// offer tries once to write. It is over when it was written, or when there is
// nothing left to write to.
func (r *Reconciler) offer(ctx context.Context, run *v1alpha1.HostRun) (over, written bool, _ error) {
	mine := run.DeepCopy()
	err := r.Client.Status().Update(ctx, run)
	if err == nil {
		return true, true, nil
	}
	if apierrors.IsNotFound(err) {
		return true, false, nil
	}
	mine.DeepCopyInto(run)
	if !apierrors.IsConflict(err) {
		return false, false, err
	}
	var stored v1alpha1.HostRun
	if again := r.Reader.Get(ctx, client.ObjectKeyFromObject(run), &stored); again != nil {
		return apierrors.IsNotFound(again), false, again
	}
	// check: InUse: what came of a deleted run, written to a new one of its name, which would then never run
	if stored.UID != run.UID || isFinished(&stored) {
		return true, false, nil
	}
	status := run.Status
	stored.DeepCopyInto(run)
	run.Status = status
	keepMinters(run, &stored)
	return false, false, err
}

// minters is what counts of the part of the status that the minter writes.
type minters struct {
	tokenID, nonce, reason string
	joined                 metav1.ConditionStatus
}

func mintersOf(run *v1alpha1.HostRun) minters {
	m := minters{tokenID: run.Status.TokenID}
	if run.Status.Proof != nil {
		m.nonce = run.Status.Proof.Nonce
	}
	if c := condition(run, v1alpha1.ConditionJoined); c != nil {
		m.joined, m.reason = c.Status, c.Reason
	}
	return m
}

// keepMinters takes from what is stored the parts that others write.
func keepMinters(run, stored *v1alpha1.HostRun) {
	run.Status.TokenID, run.Status.Proof = stored.Status.TokenID, stored.Status.Proof
	if joined := condition(stored, v1alpha1.ConditionJoined); joined != nil {
		meta.SetStatusCondition(&run.Status.Conditions, *joined)
	}
}

// ended tells of a run that is over.
func (r *Reconciler) ended(ctx context.Context, run *v1alpha1.HostRun) {
	r.tell(run, v1alpha1.ConditionSucceeded)
	r.logEnd(ctx, run)
}

func (r *Reconciler) logEnd(ctx context.Context, run *v1alpha1.HostRun) {
	c := condition(run, v1alpha1.ConditionSucceeded)
	r.Metrics.ended(string(run.Spec.Phase), c.Reason)
	log.FromContext(ctx).Info("run ended", "host", run.Spec.HostRef.Name, "phase", run.Spec.Phase, "result", c.Reason, "runID", run.Status.RunID)
}

// later is when a run is tried again.
func (r *Reconciler) later(run *v1alpha1.HostRun, reason string) ctrl.Result {
	return ctrl.Result{RequeueAfter: delay(run.CreationTimestamp.Time, r.Now(), rand.Float64(), reason)} //nolint:gosec // spreads load
}
