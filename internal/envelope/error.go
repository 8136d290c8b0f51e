package envelope

import "fmt"

// Error says what is wrong with bytes on the wire and which exit code the shim
// answers to the same bytes.
type Error struct {
	Code  ExitCode
	Field string // the field or line at fault, may be empty
	What  string
}

// Error is one line without the value at fault: it may be secret or very long.
func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s (exit %d)", e.What, int(e.Code))
	}
	return fmt.Sprintf("%s: %s (exit %d)", e.Field, e.What, int(e.Code))
}

func malformed(field, format string, args ...any) *Error {
	return &Error{Code: ExitEnvelope, Field: field, What: fmt.Sprintf(format, args...)}
}

func badParam(field, format string, args ...any) *Error {
	return &Error{Code: ExitParam, Field: field, What: fmt.Sprintf(format, args...)}
}
