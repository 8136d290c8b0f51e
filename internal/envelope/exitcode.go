package envelope

import "fmt"

// ExitCode is the exit status of the shim (docs/spec/envelope.md, Exit codes).
// The shim never exits 255, which ssh uses for failures of its own.
type ExitCode int

// The exit codes of the shim.
const (
	ExitOK             ExitCode = 0
	ExitInternal       ExitCode = 1
	ExitSignature      ExitCode = 2
	ExitParam          ExitCode = 3
	ExitEnvelope       ExitCode = 4
	ExitPhase          ExitCode = 5
	ExitScriptFailed   ExitCode = 10
	ExitTimedOut       ExitCode = 11
	ExitBusy           ExitCode = 12
	ExitRevoked        ExitCode = 13
	ExitWarrant        ExitCode = 14
	ExitTarget         ExitCode = 15
	ExitPhaseOrProfile ExitCode = 16
	ExitNotYetValid    ExitCode = 17
	ExitExpired        ExitCode = 18
	ExitRollback       ExitCode = 20
	ExitSerialReused   ExitCode = 21
	ExitState          ExitCode = 22
	ExitPreflight      ExitCode = 23
)

// String names the code in a few words for messages.
func (c ExitCode) String() string {
	if name, ok := c.name(); ok {
		return name
	}
	return fmt.Sprintf("exit code %d, which no shim gives", int(c))
}

// Known reports whether the code is one that the shim gives.
func (c ExitCode) Known() bool {
	_, ok := c.name()
	return ok
}

func (c ExitCode) name() (string, bool) {
	switch c {
	case ExitOK:
		return "ok", true
	case ExitInternal:
		return "internal error of the shim", true
	case ExitSignature:
		return "signature rejected", true
	case ExitParam:
		return "bad parameter", true
	case ExitEnvelope:
		return "malformed envelope", true
	case ExitPhase:
		return "unknown phase", true
	case ExitScriptFailed:
		return "script failed", true
	case ExitTimedOut:
		return "script ran into its time limit", true
	case ExitBusy:
		return "another run is active", true
	case ExitRevoked:
		return "signer revoked", true
	case ExitWarrant:
		return "warrant missing or malformed", true
	case ExitTarget:
		return "wrong target or cluster", true
	case ExitPhaseOrProfile:
		return "wrong phase or profile", true
	case ExitNotYetValid:
		return "not yet valid", true
	case ExitExpired:
		return "expired", true
	case ExitRollback:
		return "serial rolled back or jumped", true
	case ExitSerialReused:
		return "same serial with other content", true
	case ExitState:
		return "state missing or corrupt", true
	case ExitPreflight:
		return "preflight of the host failed", true
	default:
		return "", false
	}
}
