package lint

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// Severity says how much a finding matters.
type Severity int

// The severities, in rising order. The zero value is the lowest.
const (
	Note    Severity = iota // worth knowing; nothing may be wrong
	Warning                 // will likely bite
	Error                   // the script will fail, or gives something away
)

// String is the word used in messages, JSON and SARIF.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "note"
	}
}

// Severities are all of them, in rising order.
func Severities() []Severity { return []Severity{Note, Warning, Error} }

// Finding is one place in a script at which a rule points. Lines and columns count from 1,
// columns in characters; the end is the place behind the last character.
type Finding struct {
	Rule            string
	Severity        Severity
	Line, Col       int
	EndLine, EndCol int
	Message         string
	Hint            string
}

// Ignored is a finding that a comment in the script asks not to be reported, and why.
type Ignored struct {
	Finding
	Reason string
}

// Report is all that there is to say about a script.
type Report struct {
	Findings []Finding
	Ignored  []Ignored
}

// Lint gives the findings about a script of a phase, in the order of the script.
func Lint(text []byte, phase script.Phase) []Finding { return Check(text, phase).Findings }

// Check is Lint with what the script asks to ignore.
func Check(text []byte, phase script.Phase) Report {
	s := read(text, phase)
	return s.settle(s.hits())
}

// maxHits bounds the findings of one rule in one script: whoever has more has seen enough.
const maxHits = 100

func (s *source) hits() []hit {
	var all []hit
	for _, r := range rules() {
		if r.tree && s.file == nil {
			continue
		}
		found := r.find(s)
		if more := len(found) - maxHits; more > 0 {
			sortHits(found)
			found = found[:maxHits]
			found[maxHits-1].message += fmt.Sprintf("; %d more of this rule are not listed", more)
		}
		for _, h := range found {
			h.rule = r.id
			all = append(all, h)
		}
	}
	return all
}
