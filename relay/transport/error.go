package transport

import "fmt"

// Fault says how a connection failed. The zero Fault is Cut, after which only
// the host knows what was done.
type Fault int

// The faults.
const (
	// Cut: the connection ended after the command was asked for and before its
	// exit status came. Whether the command ran is unknown.
	Cut Fault = iota
	// Unreachable: nothing was asked for yet.
	Unreachable
	// HostKeyMismatch: the host shows another key than the pinned one.
	HostKeyMismatch
	// HostKeyNotPinned: there is no usable pin.
	HostKeyNotPinned
	// LoginKeyInvalid: the key to log in with cannot be used.
	LoginKeyInvalid
)

// String is the fault in one word.
func (f Fault) String() string {
	switch f {
	case Unreachable:
		return "Unreachable"
	case HostKeyMismatch:
		return "HostKeyMismatch"
	case HostKeyNotPinned:
		return "HostKeyNotPinned"
	case LoginKeyInvalid:
		return "LoginKeyInvalid"
	default:
		return "Cut"
	}
}

// Error is a failed connection.
type Error struct {
	Fault Fault
	What  string
}

// Error says what failed and never holds a key.
func (e *Error) Error() string { return e.Fault.String() + ": " + e.What }

func failed(f Fault, format string, args ...any) *Error {
	return &Error{Fault: f, What: fmt.Sprintf(format, args...)}
}
