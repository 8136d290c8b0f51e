package delivery

import (
	"context"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/transcript"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Memory is what a host knows of a run that may have been delivered. The zero
// Memory is Lost, after which nothing is sent again.
type Memory int

// What a host may know.
const (
	// Lost: the host cannot tell, now or ever. Another kind of shim, or a host
	// that lost its records.
	Lost Memory = iota
	// Ended: the run is over, the Report says how.
	Ended
	// Running: ask again later.
	Running
	// NeverSeen: the host never started the run. It may be sent again.
	NeverSeen
	// NotAsked: the host could not be asked, the Report says why. Ask again later.
	NotAsked
)

// Recall asks a host what became of a run. It changes nothing on the host.
func Recall(ctx context.Context, target transport.Target, limits transport.Limits, runID envelope.RunID, phase envelope.Phase) (Memory, Report) {
	text, err := envelope.Envelope{Phase: envelope.PhaseOutcome, RunID: runID}.Encode()
	if err != nil {
		return Lost, unknownReport(Cut, fmt.Sprintf("asking for the outcome: %v", err))
	}
	head, kept := &headWriter{}, transcript.New(nil)
	code, err := transport.Run(ctx, target, limits, text, head, kept.Stderr, func() error { return nil })
	if err != nil {
		e, ok := fault(err)
		if !ok {
			return NotAsked, unknownReport(Cut, err.Error())
		}
		return NotAsked, faultReport(e)
	}
	record, ok := recordOf(head, runID)
	if code != int(envelope.ExitOK) || !ok {
		return cannotTell(code)
	}
	return remembered(record, phase)
}

// cannotTell is for a host that answered something else than a record.
func cannotTell(code int) (Memory, Report) {
	c := envelope.ExitCode(code)
	if c == envelope.ExitInternal || c == envelope.ExitBusy {
		return NotAsked, unknownReport(Cut, fmt.Sprintf("asked for the outcome, the host answered with exit code %d: %s", code, c))
	}
	what := c.String()
	if c == envelope.ExitPhase {
		what = "its shim keeps no run records"
	}
	r := unknownReport(Cut, fmt.Sprintf("whether the phase ran is unknown: asked for the outcome, the host answered with exit code %d: %s", code, what))
	if !c.Known() {
		r.Result, r.ShimExit = Refused, code
	}
	return Lost, r
}

func remembered(o envelope.Outcome, phase envelope.Phase) (Memory, Report) {
	if o.State == envelope.OutcomeUnknown {
		return NeverSeen, unknownReport(Cut, "the host never started the run")
	}
	// check: Malformed: a run-id that the host knows for another phase says nothing about this one
	if o.Phase != "" && o.Phase != phase {
		return Lost, unknownReport(Cut, fmt.Sprintf("the host knows the run-id for phase %s", o.Phase))
	}
	switch {
	case o.State == envelope.OutcomeRunning:
		return Running, unknownReport(Cut, "the script is running on the host")
	case o.Code == envelope.Unknown:
		return Lost, unknownReport(Cut, "the run was started and its end is lost: the host was switched off or the shim was killed")
	}
	r := Report{Result: resultOf(envelope.ExitCode(o.Code)), ShimExit: o.Code, ScriptExit: o.Exit, Trailer: None}
	if r.Result.Retried() {
		return Lost, unknownReport(Cut, fmt.Sprintf("the host recorded exit code %d, which no run ends with", o.Code))
	}
	r.Message = messageOf(r) + ", as the host recorded; its output was not received"
	return Ended, r
}
