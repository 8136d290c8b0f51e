package admit

import (
	"context"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Trust is what is trusted, in memory.
type Trust interface {
	// Snapshot is what objects of the kind are judged by. The error says why nothing can be judged
	// at all; the snapshot may still tell which policy there is.
	Snapshot(kind string, now time.Time) (verify.Snapshot, error)
	Judge(t *object.TrustPolicy, now time.Time) decision.Decision
}

// Recorder counts answers.
type Recorder interface {
	Decided(kind, outcome string, reason decision.Reason, took time.Duration, dryRun bool)
	Canary(kind string)
	Unread(reason decision.Reason)
}

// Validator judges objects. It answers the kinds of group and refuses the rest.
type Validator struct {
	Trust    Trust
	Recorder Recorder
	// Findings may be nil: then nothing is remembered.
	Findings *Findings
	// Unpacking bounds how many objects with embedded content are judged at once; nil does not.
	Unpacking Unpacking
	Log       *slog.Logger
	Now       func() time.Time
}

// Handle answers one review.
func (v *Validator) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if d, ok := canary(req); ok {
		v.Recorder.Canary(req.Kind.Kind)
		return respond(verify.Answer{Outcome: verify.OutcomeDeny, Decision: d}, verify.Snapshot{})
	}
	now := v.Now()
	a, s := v.judge(ctx, req, now)
	// check: Internal: an answer nobody waits for any more must not be counted as consent
	if ctx.Err() != nil {
		a = denied(req, decision.Errorf(decision.Internal, "judging took longer than the API server waits").Try("try again"))
	}
	dryRun := req.DryRun != nil && *req.DryRun
	v.Recorder.Decided(req.Kind.Kind, string(a.Outcome), a.Decision.Reason, v.Now().Sub(now), dryRun)
	if a.Outcome != verify.OutcomeAllow && a.Outcome != verify.OutcomeExempt {
		v.Log.Info("refused", "outcome", a.Outcome, "message", a.Decision.Message(), "operation", req.Operation,
			"namespace", req.Namespace, "user", req.UserInfo.Username, "dryRun", dryRun)
	}
	return respond(a, s)
}

// Unread refuses what could not be read.
func (v *Validator) Unread(d decision.Decision) *admissionv1.AdmissionResponse {
	return respond(verify.Answer{Outcome: verify.OutcomeDeny, Decision: d}, verify.Snapshot{})
}

// judge answers once there is room.
func (v *Validator) judge(ctx context.Context, req *admissionv1.AdmissionRequest, now time.Time) (verify.Answer, verify.Snapshot) {
	release, err := v.Unpacking.take(ctx, req.Kind.Kind)
	// check: Internal: what there was no room to judge must not pass for lack of an answer
	if err != nil {
		return denied(req, err), verify.Snapshot{}
	}
	defer release()
	return v.answer(req, now)
}

// answer returns the answer and what it was given by.
func (v *Validator) answer(req *admissionv1.AdmissionRequest, now time.Time) (a verify.Answer, s verify.Snapshot) {
	defer func() {
		// check: Internal: a crafted object that makes a check panic must not get past it
		if r := recover(); r != nil {
			v.Log.Error("judging an object panicked", "panic", r, "kind", req.Kind.Kind, "name", req.Name)
			a = denied(req, decision.Errorf(decision.Internal, "judging the object failed").Try("report this with the webhook's log"))
		}
	}()
	if err := known(req); err != nil {
		return denied(req, err), s
	}
	s, err := v.Trust.Snapshot(req.Kind.Kind, now)
	if req.Kind.Kind == object.KindTrustPolicy {
		return v.trustPolicy(req, now), s // what is in force is for the annotations alone
	}
	// check: SnapshotUnavailable,AnchorChanged,RootFork: what is trusted is not known, or contested
	if err != nil {
		return denied(req, err), s
	}
	if v.Findings != nil {
		s.Findings = v.Findings.Of
	}
	return verify.Admission(s, request(req)), s
}

func denied(req *admissionv1.AdmissionRequest, err error) verify.Answer {
	return verify.Answer{Outcome: verify.OutcomeDeny, Decision: decision.From(err).Denied(req.Kind.Kind, req.Name)}
}

// request is what the engine is asked.
func request(req *admissionv1.AdmissionRequest) verify.Request {
	return verify.Request{
		Operation: verify.Operation(req.Operation), Kind: req.Kind.Kind, Namespace: req.Namespace, Name: req.Name, User: req.UserInfo.Username,
		Object: req.Object.Raw, Old: req.OldObject.Raw,
	}
}

// known refuses what only looks like a kind that is judged: the engine goes by the kind's name.
func known(req *admissionv1.AdmissionRequest) error {
	group := object.GroupOf(req.Kind.Kind)
	// check: KindMismatch: what no rule judges must not pass because nothing objected
	if group == "" || req.Kind.Group != group {
		return decision.Errorf(decision.KindMismatch, "no rule judges the kind %.60q of group %.60q", req.Kind.Kind, req.Kind.Group)
	}
	// check: KindMismatch: what a sub-resource writes is not what its object holds
	if req.SubResource != "" {
		return decision.Errorf(decision.KindMismatch, "no rule judges the sub-resource %.60q", req.SubResource)
	}
	return nil
}
