package admit

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// canary answers a canary before anything else is asked: also where nothing can be judged, and for a
// TrustPolicy, which Admission does not judge. One that was stored all the same may be deleted like
// anything else.
func canary(req *admissionv1.AdmissionRequest) (decision.Decision, bool) {
	err := verify.Canary(req.Name)
	if err == nil || req.Operation == admissionv1.Delete {
		return decision.Decision{}, false
	}
	return err.Denied(req.Kind.Kind, req.Name), true
}
