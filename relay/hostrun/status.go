package hostrun

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// maxMessage is the API's limit for a condition's message, far above what is
// written; anything longer comes from outside.
const maxMessage = 1024

func setCondition(run *v1alpha1.HostRun, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	meta.SetStatusCondition(&run.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: strings.ToValidUTF8(message, "?"),
		ObservedGeneration: run.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	run.Status.ObservedGeneration = run.Generation
}

func condition(run *v1alpha1.HostRun, kind string) *metav1.Condition {
	return meta.FindStatusCondition(run.Status.Conditions, kind)
}

// isFinished: Succeeded is True or False. A finished run is never run again.
func isFinished(run *v1alpha1.HostRun) bool {
	c := condition(run, v1alpha1.ConditionSucceeded)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// isVerified: the last judgement let it pass.
func isVerified(run *v1alpha1.HostRun) bool {
	c := condition(run, v1alpha1.ConditionVerified)
	return c != nil && c.Status == metav1.ConditionTrue
}

// wasSent: the run may have reached the host, so only the host can tell whether it
// happened. What Delivered=False says was written after an attempt of which it is
// known that nothing ran.
// A probe changes nothing: it may be sent as often as one likes.
func wasSent(run *v1alpha1.HostRun) bool {
	if probes(run) {
		return false
	}
	c := condition(run, v1alpha1.ConditionDelivered)
	return c != nil && c.Status != metav1.ConditionFalse
}

func probes(run *v1alpha1.HostRun) bool { return run.Spec.Phase == v1alpha1.HostRunProbe }

// finish makes the run final.
func finish(run *v1alpha1.HostRun, status metav1.ConditionStatus, reason, message string, now time.Time) {
	setCondition(run, v1alpha1.ConditionSucceeded, status, reason, message, now)
	end := metav1.NewTime(now)
	run.Status.FinishedAt = &end
}

// markSending is written before the host is given anything: a relay that starts
// again asks the host instead of sending again.
func markSending(run *v1alpha1.HostRun, m message, now time.Time) {
	if !probes(run) {
		run.Status.ScriptDigest = digest(m.envelope.Script)
	}
	run.Status.Serial = nil
	if m.warrant != nil {
		run.Status.Serial = &m.warrant.Serial
	}
	if run.Status.StartedAt == nil {
		start := metav1.NewTime(now)
		run.Status.StartedAt = &start
	}
	setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionUnknown, reasonSending, "the run is being sent; the host knows whether it ran", now)
	setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, reasonSending, "the run has not ended", now)
}

// applyReport writes what an attempt came to.
func applyReport(run *v1alpha1.HostRun, r delivery.Report, now time.Time) {
	if probes(run) && r.Result == delivery.Succeeded {
		r.ScriptExit, r.Message = envelope.Unknown, "the host answered" // there was no script
	}
	run.Status.ShimExitCode = code(r.ShimExit)
	run.Status.ScriptExitCode = code(r.ScriptExit)
	run.Status.Trailer = v1alpha1.TrailerState(r.Trailer)
	if r.Transcript != "" {
		run.Status.TranscriptTail = r.Transcript
	}
	switch r.Result {
	case delivery.Succeeded, delivery.ScriptFailed, delivery.TimedOut, delivery.Refused:
		setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionTrue, reasonDelivered, "the host answered", now)
	case delivery.Cut:
		setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionUnknown, string(r.Result), r.Message, now)
	default:
		setCondition(run, v1alpha1.ConditionDelivered, metav1.ConditionFalse, string(r.Result), r.Message, now)
	}
	switch {
	case r.Result == delivery.Succeeded:
		finish(run, metav1.ConditionTrue, string(r.Result), r.Message, now)
	case r.Result.Retried():
		setCondition(run, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, string(r.Result), r.Message, now)
	default:
		finish(run, metav1.ConditionFalse, string(r.Result), r.Message, now)
	}
}

func code(n int) *int32 {
	if n == envelope.Unknown {
		return nil
	}
	v := int32(n) //nolint:gosec // 0 to 255
	return &v
}
