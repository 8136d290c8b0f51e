package admit

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Mutator fills in an empty trustedSigners of a Verified SSHHost and, where asked to, notes the
// verdict. It never refuses, and nothing relies on it: the validating half recomputes everything,
// and reads no annotation.
type Mutator struct {
	Trust Trust
	// Annotate writes the annotation VerdictAnnotation.
	Annotate bool
	Log      *slog.Logger
	Now      func() time.Time
}

// operation is one step of a JSON patch (RFC 6902). "add" replaces a member that is there, such as
// an empty list.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Handle answers one review.
func (m *Mutator) Handle(_ context.Context, req *admissionv1.AdmissionRequest) (r *admissionv1.AdmissionResponse) {
	defer func() {
		if p := recover(); p != nil {
			m.Log.Error("mutating an object panicked", "panic", p, "name", req.Name)
			r = &admissionv1.AdmissionResponse{Allowed: true}
		}
	}()
	r = &admissionv1.AdmissionResponse{Allowed: true}
	if embeds(req.Kind.Kind) {
		return r // what is signed is never touched
	}
	s, err := m.Trust.Snapshot(req.Kind.Kind, m.Now())
	if err != nil || known(req) != nil || req.Operation == admissionv1.Delete || unchanged(req) {
		return r
	}
	signers, warning := m.fill(req, s)
	if warning != "" {
		r.Warnings = []string{oneLine("hostwarrant: spec.trustedSigners is left empty: " + warning)}
	}
	var patch []operation
	if len(signers) > 0 {
		patch = append(patch, operation{"add", "/spec/trustedSigners", signers})
	}
	if m.Annotate {
		patch = append(patch, note(req, s, signers)...)
	}
	if len(patch) == 0 {
		return r
	}
	text, err := json.Marshal(patch)
	if err != nil {
		m.Log.Error("encoding the patch", "error", err, "name", req.Name)
		return r
	}
	patchType := admissionv1.PatchTypeJSONPatch
	r.Patch, r.PatchType = text, &patchType
	return r
}

// Unread leaves what could not be read to the API server, which goes on without us.
func (m *Mutator) Unread(decision.Decision) *admissionv1.AdmissionResponse { return nil }

// unchanged tells an update that is exempt from judgement: it must stay so, also where the list is empty.
func unchanged(req *admissionv1.AdmissionRequest) bool {
	return req.Operation == admissionv1.Update && object.SameGuarded(req.Kind.Kind, req.OldObject.Raw, req.Object.Raw)
}

// fill returns what to put into trustedSigners, or why nothing.
func (m *Mutator) fill(req *admissionv1.AdmissionRequest, s verify.Snapshot) (signers []string, warning string) {
	if req.Kind.Kind != object.KindHost {
		return nil, ""
	}
	h, err := object.ParseHost(req.Object.Raw)
	if err != nil {
		return nil, ""
	}
	return verify.FillSigners(s, h)
}
