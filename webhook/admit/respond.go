package admit

import (
	"net/http"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// maxWarning bounds a warning: the API server drops what is over 256 characters when there are many.
const maxWarning = 255

// maxWarnings bounds how many warnings one answer carries.
const maxWarnings = 8

// respond words the answer for the API server.
func respond(outcome string, d decision.Decision, policy *trustpolicy.Policy) admission.Response {
	r := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		AuditAnnotations: annotations(outcome, d, policy),
		Result:           &metav1.Status{Code: http.StatusOK},
	}}
	for _, w := range d.Warnings[:min(len(d.Warnings), maxWarnings)] {
		r.Warnings = append(r.Warnings, oneLine(w))
	}
	switch outcome {
	case outcomeAllow, outcomeExempt:
		r.Allowed = true
	case outcomeWarn:
		r.Allowed = true
		r.Warnings = append([]string{oneLine("hostwarrant (mode warn) would refuse: " + d.Message())}, r.Warnings...)
	default:
		r.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: d.Message(),
		}
	}
	return r
}

// annotations go to the audit log: who decided what by which policy. Never a script or a key.
func annotations(outcome string, d decision.Decision, policy *trustpolicy.Policy) map[string]string {
	a := map[string]string{"verdict": outcome}
	if d.Reason != "" {
		a["reason"] = string(d.Reason)
	}
	if policy != nil {
		a["policy-digest"] = policy.Digest
		a["policy-version"] = strconv.Itoa(policy.Version)
	}
	return a
}

// oneLine makes a text fit for a warning.
func oneLine(s string) string { return decision.OneLine(s, maxWarning) }
