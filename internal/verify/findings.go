package verify

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// maxFindings is how many findings of lint one phase shows.
const maxFindings = 2

// maxLinted is the largest script, in bytes, that is read for findings while somebody
// waits for an answer: a shell parser takes milliseconds for 64 KiB, and up to a second
// for four times that. `hostwarrant lint` has no such bound.
const maxLinted = 64 << 10

// Findings words what lint says of one script as warnings. They refuse nothing.
func Findings(text []byte, phase script.Phase) []string {
	if len(text) > maxLinted {
		return []string{fmt.Sprintf("%s: over %d KiB, not linted here: hostwarrant lint FILE", phase, maxLinted>>10)}
	}
	var all []string
	for _, w := range lint.Warnings(lint.Lint(text, phase), maxFindings) {
		all = append(all, decision.OneLine(string(phase)+": "+w, maxWarning))
	}
	return all
}

// findings are those of scripts that somebody vouched for.
func (s Snapshot) findings(p *object.JoinProfile) []string {
	of := s.Findings
	if of == nil {
		of = Findings
	}
	var all []string
	for _, phase := range p.Phases() {
		all = append(all, of([]byte(p.Scripts[phase]), phase)...)
	}
	return all
}
