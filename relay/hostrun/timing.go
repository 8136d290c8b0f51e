package hostrun

import (
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

const (
	// defaultDeadline is the CRD's default, for objects stored without it.
	defaultDeadline = 3600 * time.Second

	// runMargin is for what a run needs beside its script: verification, the grace
	// that a script gets at its timeout (10 s), and the rest of the output.
	runMargin = 90 * time.Second

	// maxScriptTime bounds the wait whatever a profile says (docs/spec/relay.md).
	maxScriptTime = 7200 * time.Second

	minDelay = 2 * time.Second
	maxDelay = 60 * time.Second

	// maxUnreachableDelay: each try of a host that is silent costs a slot 15 s.
	maxUnreachableDelay = 5 * time.Minute

	// applyGrace is how long after a run's creation what it names may still be
	// applied: tools write the objects of one change in an order of their own.
	applyGrace = 30 * time.Second
)

// scriptTime is how long the host lets a script of the phase run, unless the
// profile says more.
func scriptTime(phase v1alpha1.HostRunPhase) time.Duration {
	switch phase {
	case v1alpha1.HostRunJoin:
		return 300 * time.Second
	case v1alpha1.HostRunLeave:
		return 180 * time.Second
	case v1alpha1.HostRunProbe:
		return 0 // no script runs
	default:
		return 600 * time.Second
	}
}

// runTime bounds the wait for a run's end. stated is spec.timeouts of the profile,
// which no signature covers: it can only make the relay wait, and not for ever. By
// its warrant, which may be nil, the host lets a script run.
func runTime(phase v1alpha1.HostRunPhase, stated string, w *warrant.Warrant) time.Duration {
	limit := scriptTime(phase)
	if d, err := time.ParseDuration(stated); err == nil && d > limit {
		limit = min(d, maxScriptTime)
	}
	if w != nil {
		limit = max(limit, time.Duration(w.TimeoutSeconds())*time.Second)
	}
	return limit + runMargin
}

// delay is a quarter of the time that has passed since from, within the bounds of
// the reason, so that attempts grow further apart; jitter (0 to 1) spreads those of
// many hosts.
func delay(from, now time.Time, jitter float64, reason string) time.Duration {
	longest := maxDelay
	if reason == string(delivery.Unreachable) {
		longest = maxUnreachableDelay
	}
	d := min(max(now.Sub(from)/4, minDelay), longest)
	return time.Duration(float64(d) * (0.75 + jitter/2))
}

// inTime lets a run wait for what it names and is not there, as long as that may
// only not be there yet.
func inTime(why *refusal, run *v1alpha1.HostRun, now time.Time) *refusal {
	grace := run.CreationTimestamp.Add(applyGrace)
	missing := slices.Contains([]string{judge.ReasonHostNotFound, judge.ReasonProfileNotFound, reasonSecretNotFound}, why.Reason)
	if !missing || !now.Before(grace) {
		return why
	}
	return &refusal{Reason: why.Reason, Message: why.Message + "; looked for until " + grace.UTC().Format(time.TimeOnly) + " UTC", Waiting: true}
}

// deadline is when a run is given up. One that was sent is asked about for as long
// as a script of its phase runs by default, and longer while the host says that it does.
func deadline(run *v1alpha1.HostRun) time.Time {
	d := time.Duration(run.Spec.DeadlineSeconds) * time.Second
	if d <= 0 {
		d = defaultDeadline
	}
	end := run.CreationTimestamp.Add(d)
	if run.Status.StartedAt != nil && wasSent(run) {
		if late := run.Status.StartedAt.Add(scriptTime(run.Spec.Phase) + 2*runMargin); late.After(end) {
			return late
		}
	}
	return end
}

// longestEnd is when no host can still be running a script that was sent.
func longestEnd(run *v1alpha1.HostRun) time.Time {
	return run.Status.StartedAt.Add(maxScriptTime + 2*runMargin)
}
