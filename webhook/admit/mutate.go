package admit

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Mutator fills in an empty trustedSigners of a Verified SSHHost. It never refuses, and nothing
// relies on it: the validating half recomputes everything.
type Mutator struct {
	Policies Policies
	Log      *slog.Logger
	Now      func() time.Time
}

// operation is one step of a JSON patch (RFC 6902). "add" replaces a member that is there, such as
// an empty list.
type operation struct {
	Op    string   `json:"op"`
	Path  string   `json:"path"`
	Value []string `json:"value"`
}

// Handle answers one review.
func (m *Mutator) Handle(_ context.Context, req admission.Request) (r admission.Response) {
	defer func() {
		if p := recover(); p != nil {
			m.Log.Error("filling in trustedSigners panicked", "panic", p, "name", req.Name)
			r = admission.Allowed("")
		}
	}()
	signers, warning := m.fill(req)
	r = admission.Allowed("")
	if warning != "" {
		r.Warnings = []string{oneLine("hostwarrant: spec.trustedSigners is left empty: " + warning)}
	}
	if len(signers) == 0 {
		return r
	}
	patch, err := json.Marshal([]operation{{Op: "add", Path: "/spec/trustedSigners", Value: signers}})
	if err != nil {
		m.Log.Error("encoding the patch", "error", err, "name", req.Name)
		return r
	}
	patchType := admissionv1.PatchTypeJSONPatch
	r.Patch, r.PatchType = patch, &patchType
	return r
}

// fill returns what to put into trustedSigners, or why nothing.
func (m *Mutator) fill(req admission.Request) (signers []string, warning string) {
	if req.Kind.Kind != object.KindHost || req.Kind.Group != object.GroupKPSSH {
		return nil, ""
	}
	h, err := object.ParseHost(req.Object.Raw)
	if err != nil {
		return nil, ""
	}
	return verify.FillSigners(m.Policies.Snapshot(m.Now()), h)
}
