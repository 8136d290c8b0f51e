package hostrun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/token"
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
	Events    events.EventRecorder
	// Statements may be nil: then nothing is told before a run.
	Statements Statements
}

// Statements knows what a host is to be told before it runs anything.
type Statements interface {
	// Before gives what the host was not seen to know. The error says that this is not known.
	Before(ctx context.Context, h *object.Host, t transport.Target) (Telling, error)
}

// Telling is what a host is told before one run.
type Telling struct {
	Statements []statement.Signed
	// Heard takes the host's answers; nil where nothing is told.
	Heard func([]delivery.StatementReport)
}

// Reconcile brings one HostRun one step further. The run's host is its own meanwhile.
func (r *Reconciler) Reconcile(ctx context.Context, request Request) (ctrl.Result, error) {
	// The cache may still hold the run as it was before our last write; acting on
	// that could send it a second time.
	var run v1alpha1.HostRun
	if err := r.Reader.Get(ctx, request.NamespacedName, &run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// check: InUse: another run under the name of a deleted one would be taken to its host without that host's turn
	if isFinished(&run) || requestOf(&run) != request {
		return ctrl.Result{}, nil
	}
	return r.step(ctx, &run)
}

// step decides what is next: give up, judge, ask the host, or send.
func (r *Reconciler) step(ctx context.Context, run *v1alpha1.HostRun) (ctrl.Result, error) {
	late := r.outOfTime(run)
	if late != nil && !wasSent(run) {
		return r.end(ctx, run, late)
	}
	j, err := r.prepare(ctx, run)
	if err != nil {
		return ctrl.Result{}, err
	}
	if j.refused != nil {
		return r.refuse(ctx, run, cmp.Or(late, j.refused))
	}
	if wasSent(run) {
		again, result, err := r.ask(ctx, run, j, late)
		if !again {
			return result, err
		}
		if late != nil {
			return r.end(ctx, run, late)
		}
		if gone := withdrawn(run); gone != "" {
			return r.end(ctx, run, refuse(reasonCancelled, gone+", and the host never started it"))
		}
	}
	return r.send(ctx, run, j)
}

// outOfTime says why a run is not looked after any more, nil where it is.
func (r *Reconciler) outOfTime(run *v1alpha1.HostRun) *refusal {
	if gone := withdrawn(run); gone != "" && !wasSent(run) {
		return refuse(reasonCancelled, gone+" before it was sent")
	}
	if !r.Now().Before(deadline(run)) {
		return refuse(reasonDeadlineExceeded, "given up, "+lastWord(run))
	}
	return nil
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
		return "no attempt came to an end"
	}
	return fmt.Sprintf("last: %s: %s", c.Reason, c.Message)
}

// ask lets the host tell what became of a run that may have reached it. Only when
// the host never saw it, it is sent again. One that is late is asked about once, so that an end which the
// host remembers is not lost, and waited for only while the host says that it runs.
func (r *Reconciler) ask(ctx context.Context, run *v1alpha1.HostRun, j judged, late *refusal) (again bool, _ ctrl.Result, _ error) {
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
		if late != nil && (memory == delivery.NotAsked || r.Now().After(longestEnd(run))) {
			result, err := r.end(ctx, run, late)
			return false, result, err
		}
		setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, string(report.Result), report.Message, now)
	default:
		if report.ShimExit != envelope.Unknown {
			run.Status.ShimExitCode = code(report.ShimExit)
		}
		finish(run, metav1.ConditionFalse, string(report.Result), report.Message, now)
	}
	result, err := r.save(ctx, run, v1alpha1.ConditionSucceeded)
	return false, result, err
}

// send gives the run to the host and waits for its end.
func (r *Reconciler) send(ctx context.Context, run *v1alpha1.HostRun, j judged) (ctrl.Result, error) {
	runID, err := r.runID(run)
	if err != nil {
		return ctrl.Result{}, err
	}
	m, refused, err := r.compose(ctx, run, j, runID)
	if err != nil {
		return ctrl.Result{}, err
	}
	if refused != nil && refused.Reason == token.Pending {
		return r.awaitToken(ctx, run)
	}
	if refused != nil {
		return r.refuse(ctx, run, refused)
	}
	telling, err := r.telling(ctx, j)
	if err != nil {
		return ctrl.Result{}, err
	}
	news := verified(run, r.Now())
	run.Status.RunID, run.Status.HostUID = string(runID), j.host.UID
	run.Status.Attempts++
	limits := r.Limits
	limits.Run = runTime(run.Spec.Phase, j.statedTime, m.warrant)
	o := delivery.Order{Target: j.target, Limits: limits, Envelope: m.envelope, Secrets: m.secrets, Statements: telling.Statements}
	stop := func() {}
	report, err := r.Courier.Deliver(ctx, o, func() error {
		markSending(run, m, r.Now())
		// A write that meets a newer object fails, and then nothing is sent.
		if err := r.Client.Status().Update(ctx, run); err != nil {
			return err
		}
		stop = r.tellSending(run)
		news = false
		return nil
	})
	stop()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: minErrorDelay}, nil // somebody changed or deleted it meanwhile
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("sending run %s: %w", runID, err)
	}
	if telling.Heard != nil {
		telling.Heard(report.Statements)
	}
	if news { // the host was not reached
		r.tell(run, v1alpha1.ConditionVerified)
	}
	applyReport(run, report, r.Now())
	return r.save(ctx, run, v1alpha1.ConditionSucceeded)
}

// compose writes what the run sends, or says why it is not sent.
func (r *Reconciler) compose(ctx context.Context, run *v1alpha1.HostRun, j judged, runID envelope.RunID) (message, *refusal, error) {
	var refused *refusal
	if j.profile == nil {
		// check: Unsigned: a script that was changed, or whose signer was revoked, since the run was first sent
		if j.profile, refused = judge.Sending(j.snapshot, run, j.stored); refused != nil {
			return message{}, refused, nil
		}
	}
	given, refused, err := r.handed(ctx, run, j.profile)
	if err != nil || refused != nil {
		return message{}, refused, err
	}
	m, refused := order(run, j.host, j.profile, j.cluster, given, runID)
	return m, refused, nil
}

// verified says that all was judged and is vouched for, and whether that is news.
func verified(run *v1alpha1.HostRun, now time.Time) (news bool) {
	news = !isVerified(run)
	message := fmt.Sprintf("%s of SSHJoinProfile %q is vouched for", run.Spec.Phase, run.Spec.ProfileRef.Name)
	if probes(run) {
		message = fmt.Sprintf("the SSHHost %q may be asked", run.Spec.HostRef.Name)
	}
	setCondition(run, v1alpha1.ConditionVerified, metav1.ConditionTrue, reasonVerified, message, now)
	return news
}

// telling is what the run's host is told before it: what is not known must not pass for nothing.
func (r *Reconciler) telling(ctx context.Context, j judged) (Telling, error) {
	if r.Statements == nil {
		return Telling{}, nil
	}
	telling, err := r.Statements.Before(ctx, j.host, j.target)
	// check: PolicyUnavailable: a revocation that nobody could read, and the run that it forbids goes first
	if err != nil {
		return Telling{}, fmt.Errorf("reading what the host is to be told: %w", err)
	}
	return telling, nil
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
	why = inTime(why, run, r.Now())
	before := run.Status.DeepCopy()
	setCondition(run, v1alpha1.ConditionVerified, metav1.ConditionFalse, why.Reason, why.Message, r.Now())
	if !why.Waiting {
		return r.end(ctx, run, why)
	}
	if !wasSent(run) { // else it says what is known of the host, which this does not change
		setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, why.Reason, why.Message, r.Now())
	}
	if equality.Semantic.DeepEqual(before, &run.Status) {
		return r.later(run, why.Reason), nil // nothing new to write
	}
	return r.save(ctx, run, v1alpha1.ConditionVerified)
}

func (r *Reconciler) end(ctx context.Context, run *v1alpha1.HostRun, why *refusal) (ctrl.Result, error) {
	message := why.Message
	if wasSent(run) {
		message += "; the run was sent before, and whether it ran is unknown"
	}
	finish(run, metav1.ConditionFalse, why.Reason, message, r.Now())
	return r.save(ctx, run, v1alpha1.ConditionSucceeded)
}
