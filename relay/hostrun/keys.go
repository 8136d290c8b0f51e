package hostrun

import (
	"errors"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// keyRefusal says what is wrong with a key of the host's Secret, never the key.
func keyRefusal(err error, where string) *refusal {
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return refuse(string(decision.Internal), where+" cannot be used")
	}
	return refuse(e.Fault.String(), where+": "+e.What)
}
