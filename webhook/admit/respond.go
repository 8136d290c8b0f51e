package admit

import (
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// maxWarning bounds a warning: the API server drops what is over 256 characters when there are many.
const maxWarning = 255

// maxWarnings bounds how many warnings one answer carries.
const maxWarnings = 8

// maxKeys bounds how many keys the audit log names.
const maxKeys = 8

// respond words the answer for the API server.
func respond(a verify.Answer, s verify.Snapshot) *admissionv1.AdmissionResponse {
	r := &admissionv1.AdmissionResponse{
		Allowed:          a.Admits(),
		AuditAnnotations: annotations(a, s),
		Result:           &metav1.Status{Code: http.StatusOK},
		Warnings:         warnings(a, s),
	}
	if !r.Allowed {
		r.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: a.Decision.Message(),
		}
	}
	return r
}

// warnings are what people see beside the answer: what would be refused first, what they must do
// about the policy next.
func warnings(a verify.Answer, s verify.Snapshot) []string {
	var all []string
	if a.Outcome == verify.OutcomeWarn {
		all = append(all, "hostwarrant (mode warn) would refuse: "+a.Decision.Message())
	}
	// An answer about a policy says nothing of the end of the one that it replaces.
	if w := verify.ExpiryWarning(s.Policy, s.Now); w != "" && a.Decision.Kind != object.KindTrustPolicy {
		all = append(all, "hostwarrant: "+w)
	}
	all = append(all, a.Decision.Warnings...)
	all = all[:min(len(all), maxWarnings)]
	for i, w := range all {
		all[i] = oneLine(w)
	}
	return all
}

// annotations go to the audit log: who decided what by which policy, and which keys vouched. Never a
// script, a signature or a whole key.
func annotations(a verify.Answer, s verify.Snapshot) map[string]string {
	all := map[string]string{"verdict": string(a.Outcome)}
	if a.Decision.Reason != "" {
		all["reason"] = string(a.Decision.Reason)
	}
	if keys := a.Decision.Keys; len(keys) > 0 {
		all["keys"] = strings.Join(keys[:min(len(keys), maxKeys)], ",")
	}
	if s.Policy != nil {
		all["policy-digest"] = s.Policy.Digest
		all["policy-version"] = strconv.Itoa(s.Policy.Version)
	}
	return all
}

// oneLine makes a text fit for a warning.
func oneLine(s string) string { return decision.OneLine(s, maxWarning) }
