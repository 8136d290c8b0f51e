package warrant

import (
	"bytes"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// Warrant is what one phase script may do, where, and until when.
type Warrant struct {
	Profile string
	Phase   script.Phase
	Serial  int64
	// NotBefore and NotAfter are epoch seconds, UTC. Without HasNotBefore the first
	// is not written; with Never the second is not, and the word never stands there.
	NotBefore    int64
	HasNotBefore bool
	NotAfter     int64
	Never        bool
	// LeaveSHA256 and UninstallSHA256 are digests of the scripts of the same version,
	// in install and join only: 64 hex digits, or "".
	LeaveSHA256, UninstallSHA256 string
	Targets                      []Target
	Params                       []Param
	// Timeout is in seconds; 0 stands for the phase's default.
	Timeout int
}

// Limits of the block (docs/spec/warrant.md, Limits).
const (
	MaxBytes   = 16384
	MaxLines   = 128
	MaxTimeout = 7200
	maxNumber  = 999_999_999_999_999
	maxProfile = 253
)

// prefix starts every line of the block.
const prefix = "#warrant:"

// Find returns the warrant of a script. It is nil without an error where no line
// of the script starts with "#warrant:"; any other script either holds exactly one
// well-formed block in its place, or the error says WarrantMalformed.
func Find(text []byte) (*Warrant, error) {
	if !script.HasWarrantLine(text) {
		return nil, nil
	}
	_, w, err := locate(text)
	return w, err
}

// Set returns the script with w as its warrant: in the place of the block it has,
// or on line 1, or on line 2 after a "#!" line.
func Set(text []byte, w *Warrant) ([]byte, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	at, err := place(text)
	if err != nil {
		return nil, err
	}
	head := text[:at.start]
	// check: WarrantMalformed: a block glued to a "#!" line that has no line feed
	if len(head) > 0 && !bytes.HasSuffix(head, []byte("\n")) {
		return nil, malformed(1, "the script is a #! line without a line feed")
	}
	out := slices.Concat(head, w.Block(), text[at.end:])
	if _, err := Find(out); err != nil {
		return nil, err
	}
	return out, nil
}

// Strip returns the script without its block. A script without a warrant comes
// back as it is.
func Strip(text []byte) ([]byte, error) {
	at, err := place(text)
	if err != nil {
		return nil, err
	}
	return slices.Concat(text[:at.start], text[at.end:]), nil
}

// TimeoutSeconds is the time the script may take on a host.
func (w *Warrant) TimeoutSeconds() int {
	if w.Timeout > 0 {
		return w.Timeout
	}
	return DefaultTimeout(w.Phase)
}

// DefaultTimeout is upstream's default of the phase in seconds, and 0 for what is
// no phase.
func DefaultTimeout(p script.Phase) int {
	switch p {
	case script.Install, script.Uninstall:
		return 600
	case script.Join:
		return 300
	case script.Leave:
		return 180
	default:
		return 0
	}
}

func malformed(line int, format string, args ...any) *decision.Error {
	return decision.Errorf(decision.WarrantMalformed, "line %d: "+format, append([]any{line}, args...)...).
		Try("hostwarrant help warrant tells the format; hostwarrant sign writes the block")
}
