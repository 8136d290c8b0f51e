package canary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Result is what came of one canary.
type Result string

// The results. Only Seen shows that the webhook is in the path.
const (
	Seen        Result = "seen"
	NotAsked    Result = "not-asked"   // it was admitted
	Unexpected  Result = "unexpected"  // somebody else refused it, or the webhook did not answer
	Unreachable Result = "unreachable" // the API server did not answer
	Stored      Result = "stored"      // it is in the cluster, and was deleted again
	Aggregated  Result = "aggregated"  // none was sent: an API server that asks no webhook serves the kind
)

// Reason is the result as a condition names it.
func (r Result) Reason() string {
	switch r {
	case NotAsked:
		return "NotAsked"
	case Unreachable:
		return "Unreachable"
	case Stored:
		return "CanaryStored"
	default:
		return "Unexpected"
	}
}

// maxAnswer bounds what is shown of a foreign answer.
const maxAnswer = 240

// read says what an API server's answer means for a canary of a kind.
func read(k Kind, name, nonce string, code int, body []byte) (Result, string) {
	if code >= http.StatusOK && code < http.StatusMultipleChoices {
		return NotAsked, "a canary was admitted: the API server asked no webhook of ours"
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil {
		return Unexpected, fmt.Sprintf("HTTP %d: %s", code, decision.OneLine(string(body), maxAnswer))
	}
	if ours(k, name, nonce, status.Message) {
		return Seen, ""
	}
	return Unexpected, decision.OneLine(status.Message, maxAnswer)
}

// ours reports whether a refusal is our webhook's, of this object, as a canary.
func ours(k Kind, name, nonce, message string) bool {
	rest, ok := strings.CutPrefix(message, fmt.Sprintf("admission webhook %q denied the request: ", k.Webhook))
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(rest, fmt.Sprintf("%s/%s: %s: ", k.Name, name, decision.Canary))
	return ok && strings.Contains(rest, nonce)
}
