package admit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func (w *world) mutate(t *testing.T, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	m := &Mutator{Trust: w.trust, Log: silent(), Now: w.validator.Now}
	r := m.Handle(context.Background(), req)
	if !r.Allowed {
		t.Fatalf("the mutating half refused: %v", r.Result)
	}
	return r
}

// annotated applies the patch of the annotating half to an object.
func (w *world) annotated(t *testing.T, req *admissionv1.AdmissionRequest) (fields, []operation) {
	t.Helper()
	m := &Mutator{Trust: w.trust, Annotate: true, Log: silent(), Now: w.validator.Now}
	r := m.Handle(context.Background(), req)
	if r.Patch == nil {
		return nil, nil
	}
	var steps []operation
	if err := json.Unmarshal(r.Patch, &steps); err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(r.Patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := patch.Apply(req.Object.Raw)
	if err != nil {
		t.Fatalf("%s does not apply: %v", r.Patch, err)
	}
	var o fields
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o, steps
}

func TestTheVerdictIsNotedOnceAndLeavesWhatOthersWrote(t *testing.T) {
	w := newWorld(t)
	bare := with(w.host(), "trustedSigners", nil)
	foreign := withIn(bare, "metadata", "annotations", fields{"example.com/a": "b"})
	for name, c := range map[string]struct {
		object      fields
		annotations fields
	}{
		"without annotations": {bare, fields{VerdictAnnotation: "allow Verified, policy version 3"}},
		"with another's":      {foreign, fields{"example.com/a": "b", VerdictAnnotation: "allow Verified, policy version 3"}},
		"with a forged one":   {withIn(bare, "metadata", "annotations", fields{VerdictAnnotation: "allow"}), fields{VerdictAnnotation: "allow Verified, policy version 3"}},
		"of a refused host":   {with(bare, "user", "root"), fields{VerdictAnnotation: "deny UserRefused, policy version 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, steps := w.annotated(t, create(t, c.object))
			if diff := cmp.Diff(c.annotations, partOf(partOf(o, "metadata"), "annotations")); diff != "" {
				t.Error(diff)
			}
			for _, s := range steps {
				if s.Path != "/spec/trustedSigners" && !strings.HasPrefix(s.Path, "/metadata/annotations") {
					t.Errorf("writes %s", s.Path)
				}
			}
			for range 3 {
				if again, _ := w.annotated(t, create(t, o)); again != nil {
					t.Fatalf("its own output is patched again: %v", again)
				}
			}
		})
	}
}

func TestAnExemptUpdateIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	bare := deleting(with(w.host(), "trustedSigners", nil))
	released := withIn(bare, "metadata", "finalizers", nil)
	if r := w.mutate(t, update(t, bare, released)); r.Patch != nil {
		t.Errorf("patch %s", r.Patch)
	}
	if o, _ := w.annotated(t, update(t, bare, released)); o != nil {
		t.Errorf("annotated: %v", o)
	}
	if r := w.mutate(t, update(t, bare, with(released, "port", 22))); r.Patch != nil {
		t.Errorf("the same spec in other words: %s", r.Patch)
	}
	if r := w.mutate(t, update(t, bare, with(released, "port", 23))); r.Patch == nil {
		t.Error("a changed spec is not filled in")
	}
}

// The validating half reads no annotation, whether the mutating half ran or not.
func TestAForgedVerdictChangesNothing(t *testing.T) {
	w := newWorld(t)
	for name, verdict := range map[string]string{"allow": "allow Verified, policy version 3", "deny": "deny RawRefused, policy version 3"} {
		t.Run(name, func(t *testing.T) {
			note := fields{VerdictAnnotation: verdict}
			for _, c := range []struct {
				object fields
				want   decision.Reason
			}{
				{w.host(), decision.Verified},
				{with(w.host(), "execMode", "Raw"), decision.RawRefused},
				{w.signedProfile(t), decision.Verified},
				{profile(scripts(), nil), decision.Unsigned},
			} {
				if r := w.handle(t, create(t, withIn(c.object, "metadata", "annotations", note))); reason(r) != c.want {
					t.Errorf("%s; want %s", reason(r), c.want)
				}
			}
		})
	}
}

func TestTheMutatingHalfIsSilentWithoutASnapshot(t *testing.T) {
	w := newWorld(t)
	bare := create(t, with(w.host(), "trustedSigners", nil))
	w.trust.fault = decision.Errorf(decision.SnapshotUnavailable, "for a test")
	if r := w.mutate(t, bare); r.Patch != nil || len(r.Warnings) > 0 {
		t.Errorf("patch %s, warnings %q", r.Patch, r.Warnings)
	}
}

// manySigners are n keys.
func manySigners(t *testing.T, n int) []testkit.Signer {
	t.Helper()
	var all []testkit.Signer
	for range n {
		all = append(all, testkit.NewSigner(t, "ed25519"))
	}
	return all
}

func TestEmptyTrustedSignersOfAVerifiedHostAreFilledIn(t *testing.T) {
	w := newWorld(t)
	bare := with(w.host(), "trustedSigners", nil)
	for name, o := range map[string]fields{"left out": bare, "an empty list": with(bare, "trustedSigners", []string{})} {
		t.Run(name, func(t *testing.T) {
			r := w.mutate(t, create(t, o))
			want := `[{"op":"add","path":"/spec/trustedSigners","value":["` + w.signer.Line + `"]}]`
			if string(r.Patch) != want {
				t.Fatalf("patch %s; want %s", r.Patch, want)
			}
			filled := with(o, "trustedSigners", []string{w.signer.Line})
			if again := w.mutate(t, create(t, filled)); again.Patch != nil {
				t.Errorf("a second time: %s", again.Patch)
			}
			if v := w.handle(t, create(t, filled)); reason(v) != decision.Verified {
				t.Errorf("the validating half: %s", v.Result.Message)
			}
		})
	}
}

func TestNothingElseIsMutated(t *testing.T) {
	w := newWorld(t)
	bare := with(w.host(), "trustedSigners", nil)
	foreign := []string{testkit.NewSigner(t, "ed25519").Line}
	for name, o := range map[string]fields{
		"a list that is there":  w.host(),
		"a foreign list":        with(bare, "trustedSigners", foreign),
		"a Raw host":            with(bare, "execMode", "Raw"),
		"a host without a mode": with(bare, "execMode", nil),
		"a profile":             w.signedProfile(t),
		"something unreadable":  with(bare, "port", "many"),
	} {
		t.Run(name, func(t *testing.T) {
			if r := w.mutate(t, create(t, o)); r.Patch != nil || len(r.Warnings) > 0 {
				t.Fatalf("patch %s, warnings %q", r.Patch, r.Warnings)
			}
		})
	}
}

func TestSignersThatDoNotFitAreNotFilledIn(t *testing.T) {
	for name, c := range map[string]struct {
		signers []testkit.Signer
		filled  int
	}{
		"as many as fit": {manySigners(t, 16), 16},
		"one too many":   {manySigners(t, 17), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldWith(t, c.signers[0], testkit.PolicyDocument(c.signers...))
			r := w.mutate(t, create(t, with(w.host(), "trustedSigners", nil)))
			if got := strings.Count(string(r.Patch), "ssh-ed25519 "); got != c.filled {
				t.Errorf("%d signers filled in; want %d", got, c.filled)
			}
			if warned := len(r.Warnings) == 1; warned != (c.filled == 0) {
				t.Errorf("warnings %q", r.Warnings)
			}
		})
	}
	t.Run("the only one is past its term", func(t *testing.T) {
		signer := testkit.NewSigner(t, "ed25519")
		document := strings.Replace(testkit.PolicyDocument(signer), signer.Line+"\"", signer.Line+"\", validBefore: \"2026-11-29T00:00:00Z\"", 1)
		w := worldWith(t, signer, document)
		if r := w.mutate(t, create(t, with(w.host(), "trustedSigners", nil))); r.Patch != nil || len(r.Warnings) != 1 {
			t.Fatalf("patch %s, warnings %q", r.Patch, r.Warnings)
		}
	})
	t.Run("none at all", func(t *testing.T) {
		signer := testkit.NewSigner(t, "ed25519")
		w := worldWith(t, signer, strings.Replace(testkit.PolicyDocument(), "signers:\n", "signers: []\n", 1))
		if r := w.mutate(t, create(t, with(w.host(), "trustedSigners", nil))); r.Patch != nil || len(r.Warnings) != 1 {
			t.Fatalf("patch %s, warnings %q", r.Patch, r.Warnings)
		}
	})
}

func TestNothingIsFilledInFromAPolicyThatIsNotInForce(t *testing.T) {
	w := newWorld(t)
	bare := create(t, with(w.host(), "trustedSigners", nil))
	w.validator.Now = func() time.Time { return time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC) }
	if r := w.mutate(t, bare); r.Patch != nil || len(r.Warnings) != 1 {
		t.Errorf("expired: patch %s, warnings %q", r.Patch, r.Warnings)
	}
	w.holder = w.newHolder(t)
	if r := w.mutate(t, bare); r.Patch != nil || !slices.Contains(r.Warnings, "hostwarrant: spec.trustedSigners is left empty: no trust policy is in force") {
		t.Errorf("none: patch %s, warnings %q", r.Patch, r.Warnings)
	}
}

func TestAPanicOfTheMutatingHalfLeavesTheObjectAlone(t *testing.T) {
	w := newWorld(t)
	m := &Mutator{Trust: broken{}, Log: silent(), Now: w.validator.Now}
	if r := m.Handle(context.Background(), create(t, with(w.host(), "trustedSigners", nil))); !r.Allowed || r.Patch != nil {
		t.Fatalf("allowed %v, patch %s", r.Allowed, r.Patch)
	}
}
