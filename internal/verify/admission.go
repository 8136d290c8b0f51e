package verify

import (
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Operation is that of an admission request.
type Operation string

// The operations.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Request is one write as admission sees it.
type Request struct {
	Operation             Operation
	Kind, Namespace, Name string
	// Object and Old are JSON; Object is empty for Delete, Old for Create.
	Object, Old []byte
}

// Outcome is what admission answers, as metrics and audit annotations name it.
type Outcome string

// The outcomes. The zero value is none of them, and refuses.
const (
	OutcomeAllow  Outcome = "allow"
	OutcomeDeny   Outcome = "deny"
	OutcomeWarn   Outcome = "warn"   // would be refused, but the policy's mode is warn
	OutcomeExempt Outcome = "exempt" // guarded content is unchanged
	OutcomeWaive  Outcome = "waive"  // would be refused, but the policy excuses this object until a date
)

// Answer is what admission says of a request.
type Answer struct {
	Outcome  Outcome
	Decision decision.Decision
}

// Admits reports whether the request may go through.
func (a Answer) Admits() bool {
	switch a.Outcome {
	case OutcomeAllow, OutcomeWarn, OutcomeExempt, OutcomeWaive:
		return true
	default:
		return false
	}
}

// Admission judges a request about any kind but TrustPolicy, which needs the anchor
// (see TrustPolicy): the same in the webhook and offline.
func Admission(s Snapshot, r Request) Answer {
	return Answer{Outcome: OutcomeDeny, Decision: decision.Errorf(decision.Internal, "not written yet").Denied(r.Kind, r.Name)}
}
