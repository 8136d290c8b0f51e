package admit

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestTrustPolicyIsAdmittedOnlyIfTheRootsSignedIt(t *testing.T) {
	w := newWorld(t)
	edit := func(old, new string) string {
		t.Helper()
		if !strings.Contains(w.document, old) {
			t.Fatalf("the policy does not hold %q", old)
		}
		return strings.Replace(w.document, old, new, 1)
	}
	signed := func(document string, by ...testkit.Signer) fields {
		var o fields
		if err := json.Unmarshal(w.policyObject(t, document, by...), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	next := edit("version: 3", "version: 4")
	for name, c := range map[string]struct {
		object fields
		want   decision.Reason
	}{
		"the next version":                     {signed(next, w.root), decision.Verified},
		"the same bytes again":                 {signed(w.document, w.root), decision.Verified},
		"unsigned":                             {signed(next), decision.PolicyUnsigned},
		"signed by a day-to-day signer":        {signed(next, w.signer), decision.PolicyUnsigned},
		"changed after it was signed":          {with(signed(next, w.root), "document", edit("version: 3", "version: 5")), decision.SignatureInvalid},
		"its final newline lost":               {with(signed(next, w.root), "document", strings.TrimSuffix(next, "\n")), decision.NewlineChanged},
		"a lower version":                      {signed(edit("version: 3", "version: 2"), w.root), decision.PolicyRollback},
		"the same version with other bytes":    {signed(w.document+"# more\n", w.root), decision.PolicyEquivocation},
		"a version too far ahead":              {signed(edit("version: 3", "version: 1004"), w.root), decision.SerialJump},
		"the last version that is not too far": {signed(edit("version: 3", "version: 1003"), w.root), decision.Verified},
		"for another cluster":                  {signed(strings.Replace(next, "{any: {}}", "{prod-2: {}}", 1), w.root), decision.PolicyWrongCluster},
		"expired":                              {signed(strings.Replace(next, "2027-05-29", "2026-11-30", 1), w.root), decision.PolicyExpired},
		"threshold 0":                          {signed(strings.Replace(next, "thresholds: {}", "thresholds: {join: 0}", 1), w.root), decision.PolicyMalformed},
		"a threshold above the number of keys": {signed(strings.Replace(next, "thresholds: {}", "thresholds: {join: 2}", 1), w.root), decision.PolicyMalformed},
		"an unknown field":                     {signed(next+"bypass: true\n", w.root), decision.PolicyMalformed},
		"under another name":                   {withIn(signed(next, w.root), "metadata", "name", "other"), decision.PolicyMalformed},
		"a root link that nobody signed":       {with(signed(next, w.root), "rootChain", []fields{{"document": "x"}}), decision.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.handle(t, create(t, c.object))
			if reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
		})
	}
}

func TestOneSignerUnderTwoNamesDoesNotMeetThresholdTwo(t *testing.T) {
	a, b := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(a, b), "thresholds: {}", "thresholds: {install: 2, join: 2, leave: 2}", 1)
	w := worldWith(t, a, document)
	first, again, second := signedBy(t, a, "kpssh", scripts()), signedBy(t, a, "kpssh", scripts()), signedBy(t, b, "kpssh", scripts())
	both := func(x, y map[string]string) map[string]string {
		m := map[string]string{}
		for phase := range x {
			m[phase] = x[phase] + y[phase]
		}
		return m
	}
	for name, c := range map[string]struct {
		signatures map[string]string
		want       decision.Reason
	}{
		"two keys":      {both(first, second), decision.Verified},
		"one key twice": {both(first, again), decision.ThresholdNotMet},
		"one key":       {first, decision.ThresholdNotMet},
	} {
		t.Run(name, func(t *testing.T) {
			if r := w.handle(t, create(t, profile(scripts(), c.signatures))); reason(r) != c.want {
				t.Fatalf("%s: %s; want %s", reason(r), r.Result.Message, c.want)
			}
		})
	}
}

func TestTrustPolicyIsNotJudgedBeforeTheStoredOneWasRead(t *testing.T) {
	w := newWorld(t)
	holder := w.newHolder(t)
	w.trust.holder = holder
	req := create(t, trustPolicy(w.document, []string{testkit.Sign(t, w.root, "hostwarrant-policy", []byte(w.document))}))
	if r := w.handle(t, req); reason(r) != decision.SnapshotUnavailable || r.Allowed {
		t.Fatalf("before: %s: %s", reason(r), r.Result.Message)
	}
	holder.Settle(testkit.Now())
	if r := w.handle(t, req); reason(r) != decision.Verified {
		t.Fatalf("after: %s: %s", reason(r), r.Result.Message)
	}
}

func TestTrustPolicyInUseCannotBeDeleted(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		object string
		want   decision.Reason
	}{
		"the one in use": {"cluster", decision.InUse},
		"all at once":    {"", decision.InUse},
		"another name":   {"left-over", decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			req := create(t, trustPolicy(w.document, nil))
			req.Operation, req.Name, req.OldObject, req.Object.Raw = admissionv1.Delete, c.object, req.Object, nil
			if r := w.handle(t, req); reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
		})
	}
}

func TestATrustPolicyIsJudgedForTheOperationsWeKnow(t *testing.T) {
	w := newWorld(t)
	next := strings.Replace(w.document, "version: 3", "version: 4", 1)
	signed := trustPolicy(next, []string{testkit.Sign(t, w.root, "hostwarrant-policy", []byte(next))})
	unsigned := trustPolicy(next, nil)
	for name, c := range map[string]struct {
		operation admissionv1.Operation
		was, is   fields
		want      decision.Reason
		allowed   bool
	}{
		"a new one":                           {admissionv1.Create, signed, signed, decision.Verified, true},
		"a changed one":                       {admissionv1.Update, unsigned, signed, decision.Verified, true},
		"a changed one that nobody signed":    {admissionv1.Update, signed, unsigned, decision.PolicyUnsigned, false},
		"an unchanged one that nobody signed": {admissionv1.Update, unsigned, withIn(unsigned, "metadata", "labels", fields{"a": "b"}), "", true},
		"an operation nobody judges":          {admissionv1.Connect, signed, signed, decision.KindMismatch, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := update(t, c.was, c.is)
			req.Operation = c.operation
			if r := w.handle(t, req); reason(r) != c.want || r.Allowed != c.allowed {
				t.Errorf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
		})
	}
	t.Run("another name than the request's", func(t *testing.T) {
		req := create(t, signed)
		req.Name = "other"
		if r := w.handle(t, req); reason(r) != decision.Malformed || r.Allowed {
			t.Errorf("allowed %v, %s", r.Allowed, reason(r))
		}
	})
}
