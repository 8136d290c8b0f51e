package admit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
)

// fields is a JSON object.
type fields = map[string]any

// counted is one call of the recorder.
type counted struct {
	kind, outcome string
	reason        decision.Reason
	dryRun        bool
}

// recorder remembers what was counted.
type recorder struct {
	calls    []counted
	canaries []string
	unread   []decision.Reason
}

func (r *recorder) Canary(kind string)            { r.canaries = append(r.canaries, kind) }
func (r *recorder) Unread(reason decision.Reason) { r.unread = append(r.unread, reason) }

func (r *recorder) Decided(kind, outcome string, reason decision.Reason, _ time.Duration, dryRun bool) {
	r.calls = append(r.calls, counted{kind, outcome, reason, dryRun})
}

// ignore observes nothing.
type ignore struct{}

func (ignore) PolicyLoaded(*trustpolicy.Policy) {}
func (ignore) PolicyRefused(decision.Reason)    {}
func (ignore) AnchorDiffers(bool)               {}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// world is a policy in force and what signs for it.
type world struct {
	root, signer testkit.Signer
	document     string
	holder       *policy.Holder
	trust        *trust
	validator    *Validator
	recorder     *recorder
}

// trust is a policy and what a cluster holds. It stands for webhook/trusted.go.
type trust struct {
	holder *policy.Holder
	shelf  shelf
	fault  error
	// controller is the account that writes composites.
	controller string
}

func (t *trust) Snapshot(_ string, now time.Time) (verify.Snapshot, error) {
	s, err := t.holder.Snapshot(now)
	s.Ledger, s.Stored, s.Controller = t.shelf, t.shelf, t.controller
	if t.fault != nil {
		err = t.fault
	}
	return s, err
}

func (t *trust) Judge(p *object.TrustPolicy, now time.Time) decision.Decision {
	return t.holder.Judge(p, now)
}

// shelf is what a cluster holds: no ledger, no nodes, no classes.
type shelf struct {
	profiles map[string]*verify.ProfileFacts
	hosts    []*object.Host
	runs     []*object.HostRun
}

func (s shelf) Mark(string) (ledger.Mark, bool)            { return ledger.Mark{}, false }
func (s shelf) Slot(ledger.Slot) (ledger.SlotMark, bool)   { return ledger.SlotMark{}, false }
func (s shelf) Bundle(string, string) bool                 { return false }
func (s shelf) ResetUsed(string) bool                      { return false }
func (s shelf) Profile(name string) *verify.ProfileFacts   { return s.profiles[name] }
func (s shelf) Host(string, string) *object.Host           { return nil }
func (s shelf) Hosts() []*object.Host                      { return s.hosts }
func (s shelf) NodeClasses() []*object.NodeClass           { return nil }
func (s shelf) HostRuns() []*object.HostRun                { return s.runs }
func (s shelf) HostRunsFor(string) []*object.HostRun       { return s.runs }
func (s shelf) HostStatements() []*object.HostStatement    { return nil }
func (s shelf) NodeProviderID(string) (id string, ok bool) { return "", false }

// newWorld puts a policy in force that names one signer.
func newWorld(t *testing.T) *world {
	t.Helper()
	signer := testkit.NewSigner(t, "ed25519")
	return worldWith(t, signer, testkit.PolicyDocument(signer))
}

// worldWith puts the given policy in force.
func worldWith(t *testing.T, signer testkit.Signer, document string) *world {
	t.Helper()
	w := &world{root: testkit.NewSigner(t, "ed25519"), signer: signer, document: document, recorder: &recorder{}}
	w.holder = w.newHolder(t)
	w.holder.Settle(testkit.Now())
	if d := w.holder.Offer("test", w.policyObject(t, document, w.root), testkit.Now()); !d.Allowed() {
		t.Fatalf("policy: %s", d.Message())
	}
	w.trust = &trust{holder: w.holder}
	w.validator = &Validator{Trust: w.trust, Recorder: w.recorder, Log: silent(), Now: testkit.Now}
	return w
}

// newHolder returns a holder for the world's root that has no policy.
func (w *world) newHolder(t *testing.T) *policy.Holder {
	t.Helper()
	anchor := policy.Anchor{Anchor: verify.Anchor{Roots: testkit.Roots(t, w.root), ClusterID: trustpolicy.AnyCluster}}
	return policy.New(anchor, ignore{}, silent())
}

// handle answers a review and checks what every answer has in common.
func (w *world) handle(t *testing.T, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	r := w.validator.Handle(context.Background(), req)
	for _, warning := range r.Warnings {
		if len(warning) >= 256 {
			t.Errorf("warning of %d bytes", len(warning))
		}
	}
	for key, value := range r.AuditAnnotations {
		if strings.Contains(value, "\n") || len(value) > 128 {
			t.Errorf("audit annotation %s = %q", key, value)
		}
	}
	if !r.Allowed && (r.Result.Code != 403 || r.Result.Reason != metav1.StatusReasonForbidden || !strings.Contains(r.Result.Message, "; hint: ")) {
		t.Errorf("a refusal with status %+v", r.Result)
	}
	return r
}

// reason is the Reason that was given for the answer.
func reason(r *admissionv1.AdmissionResponse) decision.Reason {
	return decision.Reason(r.AuditAnnotations["reason"])
}

func encode(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// scripts are the phases of the tests' profile.
func scripts() map[string]string {
	return map[string]string{
		"install": "#!/usr/bin/env bash\nset -euo pipefail\necho install\n",
		"join":    "#!/usr/bin/env bash\nset -euo pipefail\necho join \"$KPSSH_NODE_NAME\"\n",
		"leave":   "#!/usr/bin/env bash\nset -euo pipefail\necho leave\n",
	}
}

// signedBy signs every script.
func signedBy(t *testing.T, s testkit.Signer, namespace string, texts map[string]string) map[string]string {
	t.Helper()
	signatures := map[string]string{}
	for phase, text := range texts {
		signatures[phase] = testkit.Sign(t, s, namespace, []byte(text))
	}
	return signatures
}

// profile is an SSHJoinProfile; signatures may be anything JSON can hold.
func profile(texts map[string]string, signatures any) fields {
	spec := fields{"version": "1", "scripts": texts}
	if signatures != nil {
		spec["signatures"] = signatures
	}
	return fields{
		"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindJoinProfile,
		"metadata": fields{"name": "tls-bootstrap"}, "spec": spec,
	}
}

// signedProfile is a profile that the world's policy admits.
func (w *world) signedProfile(t *testing.T) fields {
	t.Helper()
	return profile(scripts(), signedBy(t, w.signer, "kpssh", scripts()))
}

// host is an SSHHost that the world's policy admits.
func (w *world) host() fields {
	return fields{
		"apiVersion": object.GroupKPSSH + "/v1beta1", "kind": object.KindHost,
		"metadata": fields{"name": "host-a", "namespace": "pool", "labels": fields{"karpenter.dklesev.github.io/host-class": "small"}},
		"spec": fields{
			"address": "10.0.0.21", "port": 22, "user": "kpssh", "execMode": "Verified", "trustedSigners": []string{w.signer.Line},
			"sshKeySecretRef": fields{"name": "pool-ssh-key"}, "capacity": fields{"cpu": "2", "memory": "4Gi"},
		},
	}
}

// policyObject is the JSON of a TrustPolicy, signed by the roots.
func (w *world) policyObject(t *testing.T, document string, roots ...testkit.Signer) []byte {
	t.Helper()
	var signatures []string
	for _, r := range roots {
		signatures = append(signatures, testkit.Sign(t, r, trustpolicy.Namespace, []byte(document)))
	}
	return encode(t, trustPolicy(document, signatures))
}

func trustPolicy(document string, signatures []string) fields {
	return fields{
		"apiVersion": object.GroupHostwarrant + "/v1alpha1", "kind": object.KindTrustPolicy,
		"metadata": fields{"name": "cluster"}, "spec": fields{"document": document, "signatures": signatures},
	}
}

// partOf is an object inside another, empty where there is none.
func partOf(o fields, name string) fields {
	if part, ok := o[name].(fields); ok {
		return part
	}
	return fields{}
}

// textIn is a text field, empty where there is none.
func textIn(o fields, name string) string {
	if text, ok := o[name].(string); ok {
		return text
	}
	return ""
}

// with returns a copy of the object with one field of spec set; nil removes it.
func with(o fields, name string, value any) fields { return withIn(o, "spec", name, value) }

// withIn returns a copy of the object with one field of a part set; nil removes it.
func withIn(o fields, part, name string, value any) fields {
	inner := maps.Clone(partOf(o, part))
	inner[name] = value
	if value == nil {
		delete(inner, name)
	}
	out := maps.Clone(o)
	out[part] = inner
	return out
}

// create is the review of a new object.
func create(t *testing.T, o fields) *admissionv1.AdmissionRequest {
	t.Helper()
	name, namespace := textIn(partOf(o, "metadata"), "name"), textIn(partOf(o, "metadata"), "namespace")
	group, version, _ := strings.Cut(textIn(o, "apiVersion"), "/")
	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Name: name, Namespace: namespace,
		Kind:   metav1.GroupVersionKind{Group: group, Version: version, Kind: textIn(o, "kind")},
		Object: runtime.RawExtension{Raw: encode(t, o)},
	}
}

// update is the review of a changed object.
func update(t *testing.T, was, is fields) *admissionv1.AdmissionRequest {
	t.Helper()
	req := create(t, is)
	req.Operation = admissionv1.Update
	req.OldObject = runtime.RawExtension{Raw: encode(t, was)}
	return req
}

// deleting marks an object as under deletion, held by a finalizer.
func deleting(o fields) fields {
	o = withIn(o, "metadata", "deletionTimestamp", "2026-11-30T11:00:00Z")
	return withIn(o, "metadata", "finalizers", []string{"example.com/hold"})
}
