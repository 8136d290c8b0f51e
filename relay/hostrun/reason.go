package hostrun

import (
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Reasons of conditions that are neither a Decision's nor a delivery's
// (docs/spec/relay.md, Reasons).
const (
	reasonHostNotFound     = "HostNotFound"
	reasonProfileNotFound  = "ProfileNotFound"
	reasonSecretNotFound   = "SecretNotFound"
	reasonHostClaimed      = "HostClaimed"
	reasonCancelled        = "Cancelled"
	reasonDeadlineExceeded = "DeadlineExceeded"
	reasonSending          = "Sending"
	reasonDelivered        = "Delivered"
	reasonVerified         = string(decision.Verified)
)

// refusal ends a run before anything is sent. A waiting one is tried again until
// the run's deadline: what is missing can still come by itself.
type refusal struct {
	reason  string
	message string
	waiting bool
}

func refuse(reason, message string) *refusal { return &refusal{reason: reason, message: message} }

// refusedBy is the refusal of a Decision.
func refusedBy(d decision.Decision) *refusal {
	// Nobody said no: a policy, or the next one, may still come.
	waiting := slices.Contains([]decision.Reason{
		decision.PolicyUnavailable, decision.PolicyExpired, decision.AnchorChanged, decision.RootFork, decision.SnapshotUnavailable,
	}, d.Reason)
	return &refusal{reason: string(d.Reason), message: d.Message(), waiting: waiting}
}
