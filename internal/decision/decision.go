package decision

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Outcome says whether an object may take effect.
type Outcome int

const (
	// Deny is the zero value: what nobody decided is refused.
	Deny Outcome = iota
	// Allow is only ever set after every check passed.
	Allow
)

// String is the word used in metrics and JSON.
func (o Outcome) String() string {
	if o == Allow {
		return "allow"
	}
	return "deny"
}

// MaxMessage bounds Message: kubectl shows it on one line, and audit logs keep it.
const MaxMessage = 512

// Decision is the answer about one object.
type Decision struct {
	Outcome Outcome
	Reason  Reason

	// Kind and Name say which object, as in "SSHJoinProfile" and "tls-bootstrap".
	Kind, Name string
	// Where is the phase or field path at fault; empty for the whole object.
	Where string
	// What says in one sentence, without a full stop, what is wrong.
	What string
	// Hint is the next command, or what else to do.
	Hint string
	// Warnings are shown to the person even when the object is admitted.
	Warnings []string
	// Keys are the fingerprints of the signers that vouched, ascending, for audit.
	Keys []string
}

// Allowed reports whether the object may take effect.
func (d Decision) Allowed() bool { return d.Outcome == Allow }

// Admit is the answer after every check of an object passed.
func Admit(kind, name, what string) Decision {
	return Decision{Outcome: Allow, Reason: Verified, Kind: kind, Name: name, What: what}
}

// Message is the sentence people see, under MaxMessage bytes and on one line:
//
//	<kind>/<name>: <where>: <Reason>: <what>; hint: <hint>
//
// A part that is empty is left out. The hint is what people act on, so a long
// What is cut before the hint is.
func (d Decision) Message() string {
	reason := d.Reason
	if reason == "" {
		reason = Internal
	}
	head := cut(clean(d.Kind), 63) + "/" + cut(clean(d.Name), 100)
	if d.Where != "" {
		head += ": " + cut(clean(d.Where), 80)
	}
	head += ": " + string(reason)

	tail := ""
	if d.Hint != "" {
		tail = "; hint: " + cut(clean(d.Hint), 160)
	}
	what := clean(d.What)
	if what == "" {
		return head + tail
	}
	room := MaxMessage - 1 - len(head) - len(": ") - len(tail)
	return head + ": " + cut(what, room) + tail
}

// OneLine makes foreign text fit to be shown: escaped as in Message, and cut to
// at most limit bytes.
func OneLine(text string, limit int) string { return cut(clean(text), limit) }

// clean escapes what a terminal could obey: control characters, and the
// Unicode format characters that reorder text (CVE-2021-42574).
func clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// cut shortens s to at most n bytes, on a rune border, and says that it did.
func cut(s string, n int) string {
	const mark = "..."
	if len(s) <= n {
		return s
	}
	end := max(n-len(mark), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Error carries a Reason through Go's error returns inside the trust core.
type Error struct {
	Reason Reason
	Where  string
	What   string
	Hint   string
}

// Error is the same sentence as Decision.Message without the object.
func (e *Error) Error() string {
	s := string(e.Reason) + ": " + e.What
	if e.Where != "" {
		s = e.Where + ": " + s
	}
	return s
}

// Errorf makes an Error whose What is formatted.
func Errorf(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, What: fmt.Sprintf(format, args...)}
}

// At returns a copy of e that names where.
func (e *Error) At(where string) *Error {
	c := *e
	c.Where = where
	return &c
}

// Try returns a copy of e that hints at the next command.
func (e *Error) Try(hint string) *Error {
	c := *e
	c.Hint = hint
	return &c
}

// Denied is the answer for an object that failed with e.
func (e *Error) Denied(kind, name string) Decision {
	return Decision{Outcome: Deny, Reason: e.Reason, Kind: kind, Name: name, Where: e.Where, What: e.What, Hint: cmp.Or(e.Hint, usualHint(e.Reason))}
}

// From returns err as an Error; one that carries no Reason becomes Internal,
// so that an error nobody thought of refuses.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Errorf(Internal, "%v", err)
}
