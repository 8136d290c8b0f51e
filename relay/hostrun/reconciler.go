package hostrun

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Courier takes orders to hosts. The real one is SSH.
type Courier interface {
	Deliver(ctx context.Context, o delivery.Order, commit func() error) (delivery.Report, error)
	Recall(ctx context.Context, t transport.Target, l transport.Limits, runID envelope.RunID, phase envelope.Phase) (delivery.Memory, delivery.Report)
}

// SSH is the real Courier.
type SSH struct{}

// Deliver is delivery.Deliver.
func (SSH) Deliver(ctx context.Context, o delivery.Order, commit func() error) (delivery.Report, error) {
	return delivery.Deliver(ctx, o, commit)
}

// Recall is delivery.Recall.
func (SSH) Recall(ctx context.Context, t transport.Target, l transport.Limits, runID envelope.RunID, phase envelope.Phase) (delivery.Memory, delivery.Report) {
	return delivery.Recall(ctx, t, l, runID, phase)
}

// Reconciler takes HostRuns to their hosts.
type Reconciler struct {
	Client    client.Client // writes the status
	Reader    client.Reader // reads what is stored, not a cache
	Policy    *judge.PolicySource
	Courier   Courier
	ClusterID string
	ClusterCA []byte
	Limits    transport.Limits
	Metrics   *Metrics
	Now       func() time.Time
	Rand      io.Reader // of run-ids

	hosts *hostLocks
}

// Setup registers the controller. At most concurrent hosts are dialled at once.
func (r *Reconciler) Setup(m ctrl.Manager, concurrent int) error {
	return ctrl.NewControllerManagedBy(m).
		Named("hostrun").
		For(&v1alpha1.HostRun{}).
		WithEventFilter(predicate.GenerationChangedPredicate{}). // our own status writes are no news
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r.init())
}

func (r *Reconciler) init() *Reconciler {
	r.hosts = newHostLocks()
	return r
}

// Reconcile brings one HostRun one step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// The cache may still hold the run as it was before our last write; acting on
	// that could send it a second time.
	var run v1alpha1.HostRun
	if err := r.Reader.Get(ctx, request.NamespacedName, &run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isFinished(&run) {
		return r.expire(ctx, &run)
	}
	host := run.Namespace + "/" + run.Spec.HostRef.Name
	if !r.hosts.take(host) {
		return ctrl.Result{RequeueAfter: busyDelay}, nil
	}
	defer r.hosts.release(host)
	return r.step(ctx, &run)
}

// step decides what is next: give up, judge, ask the host, or send.
func (r *Reconciler) step(ctx context.Context, run *v1alpha1.HostRun) (ctrl.Result, error) {
	now := r.Now()
	gone := withdrawn(run)
	if gone != "" && !wasSent(run) {
		return r.end(ctx, run, refuse(reasonCancelled, gone+" before it was sent"))
	}
	if !now.Before(deadline(run)) {
		return r.end(ctx, run, refuse(reasonDeadlineExceeded, "given up, "+lastWord(run)))
	}
	j, err := r.prepare(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if j.refused != nil {
		return r.refuse(ctx, run, j.refused)
	}
	if wasSent(run) {
		again, result, err := r.ask(ctx, run, j)
		if !again {
			return result, err
		}
		if gone != "" {
			return r.end(ctx, run, refuse(reasonCancelled, gone+", and the host never started it"))
		}
	}
	return r.send(ctx, run, j)
}

// withdrawn says what keeps a run from being sent, "" where nothing does: one under
// deletion, which somebody's finalizer may hold for ever, counts as absent.
func withdrawn(run *v1alpha1.HostRun) string {
	switch {
	case run.DeletionTimestamp != nil:
		return "deleted"
	case run.Spec.Cancel:
		return "cancelled"
	default:
		return ""
	}
}

// lastWord is what was last known of a run that is given up.
func lastWord(run *v1alpha1.HostRun) string {
	c := condition(run, v1alpha1.ConditionSucceeded)
	if c == nil {
		c = condition(run, v1alpha1.ConditionVerified)
	}
	if c == nil {
		return "it was never tried"
	}
	return fmt.Sprintf("last: %s: %s", c.Reason, c.Message)
}

// ask lets the host tell what became of a run that may have reached it. Only when
// the host never saw it, it is sent again.
func (r *Reconciler) ask(ctx context.Context, run *v1alpha1.HostRun, j judged) (again bool, _ ctrl.Result, _ error) {
	limits := r.Limits
	limits.Run = runMargin
	memory, report := r.Courier.Recall(ctx, j.target, limits, envelope.RunID(run.Status.RunID), envelope.Phase(run.Spec.Phase))
	now := r.Now()
	switch memory {
	case delivery.NeverSeen:
		setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionFalse, string(report.Result), report.Message, now)
		return true, ctrl.Result{}, nil
	case delivery.Ended:
		report.Transcript = run.Status.TranscriptTail
		applyReport(run, report, now)
	case delivery.Running, delivery.NotAsked:
		if !report.Result.Retried() {
			result, err := r.end(ctx, run, refuse(string(report.Result), report.Message))
			return false, result, err
		}
		setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, string(report.Result), report.Message, now)
	default:
		if report.ShimExit != envelope.Unknown {
			run.Status.ShimExitCode = code(report.ShimExit)
		}
		finish(run, metav1.ConditionFalse, string(report.Result), report.Message, now)
	}
	result, err := r.save(ctx, run)
	return false, result, err
}

// send gives the run to the host and waits for its end.
func (r *Reconciler) send(ctx context.Context, run *v1alpha1.HostRun, j judged) (ctrl.Result, error) {
	runID, err := r.runID(run)
	if err != nil {
		return ctrl.Result{}, err
	}
	var refused *refusal
	if j.profile == nil {
		// check: Unsigned: a script that was changed, or whose signer was revoked, since the run was first sent
		if j.profile, refused = judge.Sending(j.snapshot, run, j.stored); refused != nil {
			return r.refuse(ctx, run, refused)
		}
	}
	secret, refused, err := r.joinSecret(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	var m message
	if refused == nil {
		m, refused = order(run, j.host, j.profile, j.cluster, secret, runID)
	}
	if refused != nil {
		return r.refuse(ctx, run, refused)
	}
	setCondition(run, v1alpha1.ConditionVerified, metav1.ConditionTrue, reasonVerified, fmt.Sprintf("%s of SSHJoinProfile %q is vouched for", run.Spec.Phase, j.profile.Name), r.Now())
	run.Status.RunID = string(runID)
	run.Status.Attempts++
	limits := r.Limits
	limits.Run = runTime(run.Spec.Phase, j.statedTime, m.warrant)
	o := delivery.Order{Target: j.target, Limits: limits, Envelope: m.envelope, Secrets: m.secrets}
	report, err := r.Courier.Deliver(ctx, o, func() error {
		markSending(run, m, r.Now())
		// A write that meets a newer object fails, and then nothing is sent.
		return r.Client.Status().Update(ctx, run)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("sending run %s: %w", runID, err)
	}
	applyReport(run, report, r.Now())
	return r.save(ctx, run)
}

// runID is the run's own: all attempts share it, so that the host can tell them
// for one.
func (r *Reconciler) runID(run *v1alpha1.HostRun) (envelope.RunID, error) {
	if id := envelope.RunID(run.Status.RunID); id.Valid() {
		return id, nil
	}
	return envelope.NewRunID(r.Rand)
}

// refuse writes why nothing was sent.
func (r *Reconciler) refuse(ctx context.Context, run *v1alpha1.HostRun, why *refusal) (ctrl.Result, error) {
	setCondition(run, v1alpha1.ConditionVerified, metav1.ConditionFalse, why.Reason, why.Message, r.Now())
	if why.Waiting {
		return r.save(ctx, run)
	}
	return r.end(ctx, run, why)
}

func (r *Reconciler) end(ctx context.Context, run *v1alpha1.HostRun, why *refusal) (ctrl.Result, error) {
	message := why.Message
	if wasSent(run) {
		message += "; the run was sent before, and whether it ran is unknown"
	}
	finish(run, metav1.ConditionFalse, why.Reason, message, r.Now())
	return r.save(ctx, run)
}

// save writes the status, which nobody else writes, over any change that the spec
// saw meanwhile, and says when to come back.
func (r *Reconciler) save(ctx context.Context, run *v1alpha1.HostRun) (ctrl.Result, error) {
	status := run.Status
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.Client.Status().Update(ctx, run)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if again := r.Reader.Get(ctx, client.ObjectKeyFromObject(run), run); again != nil {
			return client.IgnoreNotFound(again)
		}
		run.Status = status
		return err
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status: %w", err)
	}
	c := condition(run, v1alpha1.ConditionSucceeded)
	if isFinished(run) {
		r.Metrics.ended(string(run.Spec.Phase), c.Reason)
		log.FromContext(ctx).Info("run ended", "host", run.Spec.HostRef.Name, "phase", run.Spec.Phase, "result", c.Reason, "runID", run.Status.RunID)
		return r.expire(ctx, run)
	}
	return ctrl.Result{RequeueAfter: delay(run.CreationTimestamp.Time, r.Now(), rand.Float64())}, nil //nolint:gosec // spreads load
}

// expire deletes a finished run whose time to live is over.
func (r *Reconciler) expire(ctx context.Context, run *v1alpha1.HostRun) (ctrl.Result, error) {
	ttl, end := run.Spec.TTLSecondsAfterFinished, run.Status.FinishedAt
	if ttl == nil || end == nil || run.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if left := end.Add(time.Duration(*ttl) * time.Second).Sub(r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	same := client.Preconditions{UID: &run.UID}
	return ctrl.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, run, same))
}
