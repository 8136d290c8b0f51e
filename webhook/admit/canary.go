package admit

import (
	"regexp"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// canaryName is how the controller names what it writes to see whether we are asked.
var canaryName = regexp.MustCompile(`^hostwarrant-canary-([0-9a-f]{16})$`)

// canary answers a canary: refused whatever else holds, with its nonce, which nobody else can know.
// One that was stored all the same may be deleted like anything else.
func canary(req *admissionv1.AdmissionRequest) (decision.Decision, bool) {
	match := canaryName.FindStringSubmatch(req.Name)
	// check: Canary: a canary that is admitted shows nothing, and stays
	if match != nil && req.Operation != admissionv1.Delete {
		return decision.Errorf(decision.Canary, "admission is in the path, nonce %s", match[1]).
			Denied(req.Kind.Kind, req.Name), true
	}
	return decision.Decision{}, false
}
