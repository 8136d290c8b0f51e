package lint

import (
	"fmt"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxWarning bounds a warning: the API server cuts longer ones off (admission.k8s.io/v1, AdmissionResponse.warnings).
const MaxWarning = 256

// Warnings words findings for the person who applies a script, gravest first and at most limit of
// them; the last one counts those left out. Notes are left to hostwarrant lint.
func Warnings(findings []Finding, limit int) []string {
	var serious []Finding
	for level := Error; level >= Warning; level-- {
		for _, f := range findings {
			if f.Severity == level {
				serious = append(serious, f)
			}
		}
	}
	if limit <= 0 || len(serious) == 0 {
		return nil
	}
	shown := len(serious)
	if shown > limit {
		shown = limit - 1
	}
	var all []string
	for _, f := range serious[:shown] {
		all = append(all, decision.OneLine(fmt.Sprintf("line %d: %s: %s", f.Line, f.Rule, f.Message), MaxWarning))
	}
	if left := len(serious) - shown; left > 0 {
		all = append(all, fmt.Sprintf("%d more findings: hostwarrant lint FILE", left))
	}
	return all
}
