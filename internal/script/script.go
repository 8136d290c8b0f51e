package script

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Phase is one of the four scripts of an SSHJoinProfile.
type Phase string

// The phases, as upstream names them.
const (
	Install   Phase = "install"
	Join      Phase = "join"
	Leave     Phase = "leave"
	Uninstall Phase = "uninstall"
)

// Phases returns the phases in the order of a host's life.
func Phases() []Phase { return []Phase{Install, Join, Leave, Uninstall} }

// Known reports whether p is one of Phases.
func (p Phase) Known() bool { return slices.Contains(Phases(), p) }

// Namespace is the SSHSIG namespace of phase scripts, as upstream signs them.
const Namespace = "kpssh"

// MaxCharacters is the maxLength of SSHJoinProfile.spec.scripts.*, which the
// API server counts in Unicode code points.
const MaxCharacters = 262144

// Check refuses a script whose run bytes could differ from its signed bytes.
// The error carries TooLarge, Malformed or TemplateFound.
func Check(script []byte) error {
	const mend = "mend the script, then: hostwarrant sign -i FILE --key KEY"
	// check: TooLarge: the API server would refuse it, and work must be bounded
	if n := utf8.RuneCount(script); n > MaxCharacters {
		return decision.Errorf(decision.TooLarge, "script has %d characters, more than %d", n, MaxCharacters).Try(mend)
	}
	// check: Malformed: an API server replaces invalid UTF-8, so the stored bytes would not be the signed ones
	if !utf8.Valid(script) {
		return decision.Errorf(decision.Malformed, "script is not UTF-8 at %s", position(script, invalidAt(script))).Try(mend)
	}
	// check: Malformed: bash drops NUL, so the bytes that run are not the bytes that were signed
	if at := bytes.IndexByte(script, 0); at >= 0 {
		return decision.Errorf(decision.Malformed, "script has a NUL byte at %s", position(script, at)).Try(mend)
	}
	// check: TemplateFound: upstream renders templates, so the bytes that run would not be the signed ones
	if at := bytes.Index(script, []byte("{{")); at >= 0 {
		return decision.Errorf(decision.TemplateFound, `script has "{{" at %s; signed bytes must equal run bytes`, position(script, at)).
			Try(`pass values as KPSSH_VAR_… parameters; write a literal one as printf '%s%s' '{' '{'`)
	}
	return nil
}

// HasWarrantLine reports whether any line of the script starts with "#warrant:".
func HasWarrantLine(script []byte) bool {
	const key = "#warrant:"
	return bytes.HasPrefix(script, []byte(key)) || bytes.Contains(script, []byte("\n"+key))
}

func invalidAt(b []byte) int {
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return len(b)
}
