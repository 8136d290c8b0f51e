package delivery

import (
	"errors"
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// Result is how an attempt ended, in the words of a HostRun's conditions.
type Result string

// The results.
const (
	Succeeded        Result = "Succeeded"
	ScriptFailed     Result = "ScriptFailed"
	TimedOut         Result = "TimedOut"
	Refused          Result = "Refused" // by the host, nothing was run
	Busy             Result = "Busy"    // another run is active, nothing was run
	Cut              Result = "Cut"     // only the host knows
	Unreachable      Result = "Unreachable"
	HostKeyMismatch  Result = "HostKeyMismatch"
	HostKeyNotPinned Result = "HostKeyNotPinned"
	LoginKeyInvalid  Result = "LoginKeyInvalid"
)

// Retried reports whether the same run is attempted again. Everything else is
// final.
func (r Result) Retried() bool { return r == Unreachable || r == Busy || r == Cut }

// TrailerState says how the output ended.
type TrailerState string

// The trailer states.
const (
	Whole     TrailerState = "Whole"
	Truncated TrailerState = "Truncated"
	None      TrailerState = "None"
)

// Report is what one attempt came to.
type Report struct {
	Result     Result
	Message    string
	ShimExit   int // or envelope.Unknown
	ScriptExit int // or envelope.Unknown
	Trailer    TrailerState
	Transcript string
	Statements []StatementReport // what the host made of those that went before the run
}

func unknownReport(result Result, message string) Report {
	return Report{Result: result, Message: message, ShimExit: envelope.Unknown, ScriptExit: envelope.Unknown, Trailer: None}
}

// faultReport is the report of a connection that failed.
func faultReport(e *transport.Error) Report {
	switch e.Fault {
	case transport.Unreachable:
		return unknownReport(Unreachable, e.What)
	case transport.HostKeyMismatch:
		return unknownReport(HostKeyMismatch, e.What)
	case transport.HostKeyNotPinned:
		return unknownReport(HostKeyNotPinned, e.What)
	case transport.LoginKeyInvalid:
		return unknownReport(LoginKeyInvalid, e.What)
	default:
		return unknownReport(Cut, e.What)
	}
}

// fault gives the transport's error, if it is one.
func fault(err error) (*transport.Error, bool) { return errors.AsType[*transport.Error](err) }

// resultOf maps the shim's exit code. What no shim gives says nothing about
// whether the script ran, and neither does an internal error.
func resultOf(code envelope.ExitCode) Result {
	switch {
	case code == envelope.ExitOK:
		return Succeeded
	case code == envelope.ExitScriptFailed:
		return ScriptFailed
	case code == envelope.ExitTimedOut:
		return TimedOut
	case code == envelope.ExitBusy:
		return Busy
	case code.Refused():
		return Refused
	default:
		return Cut
	}
}

// messageOf says it in a sentence.
func messageOf(r Report) string {
	code := envelope.ExitCode(r.ShimExit)
	switch {
	case r.Result == ScriptFailed && r.ScriptExit != envelope.Unknown:
		return fmt.Sprintf("the script exited %d", r.ScriptExit)
	case r.Result == Succeeded:
		return "the script exited 0"
	case r.Result == Refused:
		return refusalMessage(code)
	default:
		return fmt.Sprintf("the host answered with exit code %d: %s", r.ShimExit, code)
	}
}

// refusalMessage says what the host refused, whose fault that is, and what to do next.
func refusalMessage(code envelope.ExitCode) string {
	message := fmt.Sprintf("the host refused the run with exit code %d: %s", int(code), code)
	if r, ok := code.Refusal(); ok {
		message += fmt.Sprintf("; at fault: %s; next: %s", r.Fault, r.Next)
	}
	return message
}
