package judge

import (
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Reasons that are no Decision's (docs/spec/relay.md, Reasons).
const (
	ReasonHostNotFound    = "HostNotFound"
	ReasonProfileNotFound = "ProfileNotFound"
	ReasonHostClaimed     = "HostClaimed"
)

// Refusal is why nothing is sent and no token given. A waiting one is tried again until the run's
// deadline: what is missing can still come by itself.
type Refusal struct {
	Reason  string
	Message string
	Waiting bool
}

// Refuse is a final refusal.
func Refuse(reason, message string) *Refusal { return &Refusal{Reason: reason, Message: message} }

// RefusedBy is the refusal of a Decision.
func RefusedBy(d decision.Decision) *Refusal {
	// Nobody said no: a policy, or the next one, may still come.
	waiting := slices.Contains([]decision.Reason{
		decision.PolicyUnavailable, decision.PolicyExpired, decision.AnchorChanged, decision.RootFork, decision.SnapshotUnavailable,
	}, d.Reason)
	return &Refusal{Reason: string(d.Reason), Message: d.Message(), Waiting: waiting}
}
