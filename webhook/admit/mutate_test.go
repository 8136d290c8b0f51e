package admit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func (w *world) mutate(t *testing.T, req admission.Request) admission.Response {
	t.Helper()
	m := &Mutator{Policies: w.holder, Log: silent(), Now: w.validator.Now}
	r := m.Handle(context.Background(), req)
	if !r.Allowed {
		t.Fatalf("the mutating half refused: %v", r.Result)
	}
	return r
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
			var patch []operation
			if err := json.Unmarshal(r.Patch, &patch); err != nil {
				t.Fatal(err)
			}
			want := []operation{{Op: "add", Path: "/spec/trustedSigners", Value: []string{w.signer.Line}}}
			if diff := cmp.Diff(want, patch); diff != "" {
				t.Fatal(diff)
			}
			filled := with(o, "trustedSigners", patch[0].Value)
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

// panicking fails whenever it is asked.
type panicking struct{}

func (panicking) Snapshot(time.Time) verify.Snapshot                     { panic("out of order") }
func (panicking) Judge(*object.TrustPolicy, time.Time) decision.Decision { panic("out of order") }

func TestAPanicOfTheMutatingHalfLeavesTheObjectAlone(t *testing.T) {
	w := newWorld(t)
	m := &Mutator{Policies: panicking{}, Log: silent(), Now: w.validator.Now}
	if r := m.Handle(context.Background(), create(t, with(w.host(), "trustedSigners", nil))); !r.Allowed || r.Patch != nil {
		t.Fatalf("allowed %v, patch %s", r.Allowed, r.Patch)
	}
}
