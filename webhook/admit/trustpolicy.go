package admit

import (
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// trustPolicy answers about a TrustPolicy. The mode says nothing here: it is what a policy says
// about others, and during a trial nobody else may replace it.
func (v *Validator) trustPolicy(req *admissionv1.AdmissionRequest, now time.Time) verify.Answer {
	switch req.Operation {
	case admissionv1.Delete:
		return answerOf(deletion(req))
	case admissionv1.Update:
		if object.SameGuarded(object.KindTrustPolicy, req.OldObject.Raw, req.Object.Raw) {
			return verify.Answer{
				Outcome:  verify.OutcomeExempt,
				Decision: decision.Admit(req.Kind.Kind, req.Name, "guarded content is unchanged"),
			}
		}
	}
	// check: KindMismatch: an operation that no rule judges must not pass because nothing objected
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return denied(req, decision.Errorf(decision.KindMismatch, "no rule judges the operation %.20q on this kind", req.Operation))
	}
	t, err := object.ParseTrustPolicy(req.Object.Raw)
	if err != nil {
		return denied(req, err)
	}
	// check: Malformed: the name that is judged must be the stored one
	if t.Name != req.Name {
		return denied(req, decision.Errorf(decision.Malformed, "the object is named %.100q, the request %.100q", t.Name, req.Name))
	}
	return answerOf(v.Trust.Judge(t, now))
}

func answerOf(d decision.Decision) verify.Answer {
	if d.Allowed() {
		return verify.Answer{Outcome: verify.OutcomeAllow, Decision: d}
	}
	return verify.Answer{Outcome: verify.OutcomeDeny, Decision: d}
}

// deletion answers a DELETE of the trust policy. Being asked at all means that the webhook
// configuration is in place, and with it the policy is needed.
func deletion(req *admissionv1.AdmissionRequest) decision.Decision {
	// check: InUse: without its policy the cluster would refuse everything after the next restart
	if req.Name == object.TrustPolicyName || req.Name == "" {
		return decision.Errorf(decision.InUse, "the trust policy is needed while the webhook is configured").
			Try("to uninstall, first: kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration hostwarrant").
			Denied(req.Kind.Kind, req.Name)
	}
	return decision.Admit(req.Kind.Kind, req.Name, "is not the policy in use")
}
