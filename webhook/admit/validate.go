package admit

import (
	"context"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Policies is what is trusted, in memory.
type Policies interface {
	Snapshot(now time.Time) verify.Snapshot
	Judge(t *object.TrustPolicy, now time.Time) decision.Decision
}

// Recorder counts answers.
type Recorder interface {
	Decided(kind, outcome string, reason decision.Reason, took time.Duration, dryRun bool)
}

// Validator judges objects. It answers SSHJoinProfile, SSHHost and TrustPolicy and refuses the rest.
type Validator struct {
	Policies Policies
	Recorder Recorder
	Log      *slog.Logger
	Now      func() time.Time
}

// The outcomes of an answer, as metrics and audit annotations name them.
const (
	outcomeAllow  = "allow"
	outcomeDeny   = "deny"
	outcomeWarn   = "warn"   // would be refused, but the policy's mode is warn
	outcomeExempt = "exempt" // guarded content is unchanged
)

// Handle answers one review.
func (v *Validator) Handle(ctx context.Context, req admission.Request) admission.Response {
	now := v.Now()
	policy := v.Policies.Snapshot(now).Policy
	outcome, d := v.decide(ctx, req, policy, now)
	dryRun := req.DryRun != nil && *req.DryRun
	v.Recorder.Decided(req.Kind.Kind, outcome, d.Reason, v.Now().Sub(now), dryRun)
	if outcome == outcomeDeny || outcome == outcomeWarn {
		v.Log.Info("refused", "outcome", outcome, "message", d.Message(), "operation", req.Operation,
			"namespace", req.Namespace, "user", req.UserInfo.Username, "dryRun", dryRun)
	}
	return respond(outcome, d, policy)
}

// decide returns the outcome and the decision behind it.
func (v *Validator) decide(ctx context.Context, req admission.Request, policy *trustpolicy.Policy, now time.Time) (string, decision.Decision) {
	d, exempt := v.judge(req, now)
	// check: Internal: an answer nobody waits for any more must not be counted as consent
	if ctx.Err() != nil {
		d, exempt = decision.Errorf(decision.Internal, "judging took longer than the API server waits").
			Try("try again").Denied(req.Kind.Kind, req.Name), false
	}
	switch {
	case exempt:
		return outcomeExempt, d
	case d.Allowed():
		return outcomeAllow, d
	case warns(policy, d, now):
		return outcomeWarn, d
	default:
		return outcomeDeny, d
	}
}

// warns says whether the policy's mode turns this refusal into a warning.
func warns(policy *trustpolicy.Policy, d decision.Decision, now time.Time) bool {
	// check: PolicyExpired: a trial must not outlive the policy that granted it
	if policy == nil || policy.Expired(now) {
		return false
	}
	// check: PolicyUnsigned: mode is what a policy says about others; during a trial nobody else may replace it
	if d.Kind == object.KindTrustPolicy {
		return false
	}
	// check: Internal,KindMismatch: what was not judged is not known to be harmless
	if d.Reason == decision.Internal || d.Reason == decision.KindMismatch {
		return false
	}
	return policy.Mode(now) == trustpolicy.Warn
}

// judge returns the decision, and whether the update is exempt from one.
func (v *Validator) judge(req admission.Request, now time.Time) (d decision.Decision, exempt bool) {
	defer func() {
		// check: Internal: a crafted object that makes a check panic must not get past it
		if r := recover(); r != nil {
			v.Log.Error("judging an object panicked", "panic", r, "kind", req.Kind.Kind, "name", req.Name)
			d, exempt = decision.Errorf(decision.Internal, "judging the object failed").
				Try("report this with the webhook's log").Denied(req.Kind.Kind, req.Name), false
		}
	}()
	if err := known(req); err != nil {
		return err.Denied(req.Kind.Kind, req.Name), false
	}
	if req.Operation == admissionv1.Delete {
		return deletion(req), false
	}
	if req.Operation == admissionv1.Update && object.SameGuarded(req.Kind.Kind, req.OldObject.Raw, req.Object.Raw) {
		return decision.Decision{Outcome: decision.Allow, Kind: req.Kind.Kind, Name: req.Name, What: "guarded content is unchanged"}, true
	}
	return v.judgeContent(req, now), false
}

// known refuses what no rule here judges.
func known(req admission.Request) *decision.Error {
	group, ok := map[string]string{
		object.KindJoinProfile: object.GroupKPSSH,
		object.KindHost:        object.GroupKPSSH,
		object.KindTrustPolicy: object.GroupHostwarrant,
	}[req.Kind.Kind]
	// check: KindMismatch: what no rule judges must not pass because nothing objected
	if !ok || req.Kind.Group != group {
		return decision.Errorf(decision.KindMismatch, "no rule judges the kind %.60q of group %.60q", req.Kind.Kind, req.Kind.Group).
			Try("compare the webhook configuration with the shipped one")
	}
	deletable := req.Operation == admissionv1.Delete && req.Kind.Kind == object.KindTrustPolicy
	// check: KindMismatch: an operation that no rule judges must not pass because nothing objected
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update && !deletable {
		return decision.Errorf(decision.KindMismatch, "no rule judges the operation %.20q on this kind", req.Operation).
			Try("compare the webhook configuration with the shipped one")
	}
	return nil
}

// deletion answers a DELETE of the trust policy. Being asked at all means that the webhook
// configuration is in place, and with it the policy is needed.
func deletion(req admission.Request) decision.Decision {
	// check: InUse: without its policy the cluster would refuse everything after the next restart
	if req.Name == object.TrustPolicyName || req.Name == "" {
		return decision.Errorf(decision.InUse, "the trust policy is needed while the webhook is configured").
			Try("to uninstall, first: kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration hostwarrant").
			Denied(req.Kind.Kind, req.Name)
	}
	return decision.Admit(req.Kind.Kind, req.Name, "is not the policy in use")
}

// judgeContent asks the engine.
func (v *Validator) judgeContent(req admission.Request, now time.Time) decision.Decision {
	meta, err := object.ParseMeta(req.Object.Raw)
	if err != nil {
		return decision.From(err).Denied(req.Kind.Kind, req.Name)
	}
	// check: Malformed: scopes and names are judged by the object's own name, which must be the stored one
	if req.Name != "" && meta.Name != req.Name || meta.Namespace != req.Namespace {
		return decision.Errorf(decision.Malformed, "the object is named %.100q, the request %.100q", meta.Namespace+"/"+meta.Name, req.Namespace+"/"+req.Name).
			Denied(req.Kind.Kind, req.Name)
	}
	switch req.Kind.Kind {
	case object.KindJoinProfile:
		return v.joinProfile(req, now)
	case object.KindHost:
		return v.host(req, now)
	case object.KindTrustPolicy:
		return v.trustPolicy(req, now)
	default:
		return decision.Decision{Kind: req.Kind.Kind, Name: req.Name, Reason: decision.KindMismatch}
	}
}

func (v *Validator) joinProfile(req admission.Request, now time.Time) decision.Decision {
	p, err := object.ParseJoinProfile(req.Object.Raw)
	if err != nil {
		return decision.From(err).Denied(req.Kind.Kind, req.Name)
	}
	return verify.JoinProfile(v.Policies.Snapshot(now), p)
}

func (v *Validator) host(req admission.Request, now time.Time) decision.Decision {
	h, err := object.ParseHost(req.Object.Raw)
	if err != nil {
		return decision.From(err).Denied(req.Kind.Kind, req.Name)
	}
	var old *object.Host
	if req.Operation == admissionv1.Update {
		// An old object that cannot be read forbids nothing more than the rules for a new one do.
		if stored, err := object.ParseHost(req.OldObject.Raw); err == nil {
			old = stored
		}
	}
	return verify.Host(v.Policies.Snapshot(now), h, old)
}

func (v *Validator) trustPolicy(req admission.Request, now time.Time) decision.Decision {
	t, err := object.ParseTrustPolicy(req.Object.Raw)
	if err != nil {
		return decision.From(err).Denied(req.Kind.Kind, req.Name)
	}
	return v.Policies.Judge(t, now)
}
