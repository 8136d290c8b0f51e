package hostrun

import (
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

// Reasons of conditions that are neither a Decision's nor a delivery's
// (docs/spec/relay.md, Reasons).
const (
	reasonSecretNotFound   = "SecretNotFound"
	reasonCancelled        = "Cancelled"
	reasonDeadlineExceeded = "DeadlineExceeded"
	reasonSending          = "Sending"
	reasonDelivered        = "Delivered"
	reasonVerified         = string(decision.Verified)
)

// refusal ends a run before anything is sent.
type refusal = judge.Refusal

func refuse(reason, message string) *refusal { return judge.Refuse(reason, message) }
