package admit

import (
	"crypto/sha256"

	"k8s.io/utils/lru"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// maxRemembered is how many scripts' findings are kept: those of a thousand profiles.
const maxRemembered = 4096

// Findings remembers what lint says of a script. Linting takes longer than everything else that is
// done for a review, and the same scripts come again with every apply. Make one with NewFindings.
type Findings struct{ known *lru.Cache }

// NewFindings returns one that knows no script yet.
func NewFindings() *Findings { return &Findings{known: lru.New(maxRemembered)} }

// linted is one script under one phase.
type linted struct {
	sum   [sha256.Size]byte
	phase script.Phase
}

// Of is verify.Findings.
func (f *Findings) Of(text []byte, phase script.Phase) []string {
	key := linted{sum: sha256.Sum256(text), phase: phase}
	if known, ok := f.known.Get(key); ok {
		if warnings, ok := known.([]string); ok {
			return warnings
		}
	}
	warnings := verify.Findings(text, phase)
	f.known.Add(key, warnings)
	return warnings
}
