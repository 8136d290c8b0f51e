package admit

import (
	"context"
	"crypto/rand"
	"crypto/sha512"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// signUnchecked signs in the namespace kpssh with any key, also one that our own Sign refuses.
func signUnchecked(t *testing.T, s testkit.Signer, text string) string {
	t.Helper()
	digest := sha512.Sum512([]byte(text))
	raw, err := s.Sign(rand.Reader, append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{"kpssh", "", "sha512", digest[:]})...))
	if err != nil {
		t.Fatal(err)
	}
	wire := append(ssh.Marshal(struct {
		Format string
		Blob   []byte
	}{raw.Format, raw.Blob}), raw.Rest...)
	return testkit.Blob{
		Magic: "SSHSIG", Version: 1, Key: s.PublicKey().Marshal(), Namespace: "kpssh", Hash: "sha512", Signature: wire,
	}.Armor()
}

func TestWhatNoRuleJudgesIsRefused(t *testing.T) {
	w := newWorld(t)
	signed := w.signedProfile(t)
	for name, c := range map[string]struct {
		kind, group string
		operation   admissionv1.Operation
		want        decision.Reason
	}{
		"a kind we judge":               {object.KindJoinProfile, object.GroupKPSSH, admissionv1.Create, decision.Verified},
		"a kind nobody judges":          {"ConfigMap", "", admissionv1.Create, decision.KindMismatch},
		"a known kind of another group": {object.KindJoinProfile, "example.com", admissionv1.Create, decision.KindMismatch},
		"an operation nobody judges":    {object.KindJoinProfile, object.GroupKPSSH, admissionv1.Connect, decision.KindMismatch},
		"a known kind in other letters": {"sshjoinprofile", object.GroupKPSSH, admissionv1.Create, decision.KindMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			req := create(t, signed)
			req.Kind.Kind, req.Kind.Group, req.Operation = c.kind, c.group, c.operation
			if r := w.handle(t, req); reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Fatalf("allowed %v, %s: %s; want %s", r.Allowed, reason(r), r.Result.Message, c.want)
			}
		})
	}
}

func TestASubResourceIsRefused(t *testing.T) {
	w := newWorld(t)
	req := create(t, w.signedProfile(t))
	if r := w.handle(t, req); !r.Allowed {
		t.Fatal(r.Result.Message)
	}
	req.SubResource = "status"
	if r := w.handle(t, req); r.Allowed || reason(r) != decision.KindMismatch {
		t.Fatalf("allowed %v, %s", r.Allowed, reason(r))
	}
}

// What keeps everything from being judged refuses in mode warn too.
func TestWithoutASnapshotEverythingIsRefused(t *testing.T) {
	w := warning(t)
	signed := create(t, w.signedProfile(t))
	for _, want := range []decision.Reason{decision.SnapshotUnavailable, decision.AnchorChanged, decision.RootFork} {
		w.trust.fault = decision.Errorf(want, "for a test").Try("wait")
		if r := w.handle(t, signed); r.Allowed || reason(r) != want {
			t.Errorf("allowed %v, %s; want %s", r.Allowed, reason(r), want)
		}
	}
	w.trust.fault = nil
	if r := w.handle(t, signed); !r.Allowed || reason(r) != decision.Verified {
		t.Errorf("with one: %s", r.Result.Message)
	}
}

func TestCanariesAreAlwaysRefusedAndNotCounted(t *testing.T) {
	const name = "hostwarrant-canary-0123456789abcdef"
	w := warning(t)
	w.trust.fault = decision.Errorf(decision.SnapshotUnavailable, "for a test").Try("wait") // they are asked before all else
	for kind, group := range map[string]string{
		"SSHJoinProfile": object.GroupKPSSH, "SSHHost": object.GroupKPSSH, "SSHNodeClass": object.GroupKPSSH,
		"HostRun": object.GroupHostwarrant, "TrustPolicy": object.GroupHostwarrant,
	} {
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			req := create(t, w.host())
			req.Kind.Kind, req.Kind.Group, req.Name, req.Operation = kind, group, name, operation
			r := w.handle(t, req)
			if r.Allowed || reason(r) != decision.Canary || !strings.Contains(r.Result.Message, "0123456789abcdef") || len(r.Warnings) > 0 {
				t.Errorf("%s %s: allowed %v, %s", operation, kind, r.Allowed, r.Result.Message)
			}
		}
	}
	if len(w.recorder.calls) != 0 || len(w.recorder.canaries) != 10 {
		t.Errorf("counted %v and %d canaries", w.recorder.calls, len(w.recorder.canaries))
	}
	for _, other := range []string{name + "0", "hostwarrant-canary-0123456789ABCDEF", "hostwarrant-canary-", "x-" + name} {
		req := create(t, w.host())
		req.Name = other
		if r := w.handle(t, req); reason(r) == decision.Canary {
			t.Errorf("%s is taken for a canary", other)
		}
	}
	stored := create(t, w.signedProfile(t))
	stored.Name, stored.Operation, stored.OldObject = name, admissionv1.Delete, stored.Object
	w.trust.fault = nil
	if r := w.handle(t, stored); reason(r) == decision.Canary {
		t.Error("one that was stored cannot be deleted as a canary")
	}
}

// A key that the audit log names is a fingerprint; expiry is warned of once.
func TestAnswersNameTheKeysAndTheEndOfThePolicy(t *testing.T) {
	w := newWorld(t)
	signed := create(t, w.signedProfile(t))
	r := w.handle(t, signed)
	if r.AuditAnnotations["keys"] != w.signer.Fingerprint || len(r.Warnings) != 0 {
		t.Errorf("keys %q, warnings %q", r.AuditAnnotations["keys"], r.Warnings)
	}
	expires := time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC)
	for before, warned := range map[time.Duration]bool{30*24*time.Hour + time.Second: false, 30 * 24 * time.Hour: true} {
		w.validator.Now = func() time.Time { return expires.Add(-before) }
		for _, req := range []*admissionv1.AdmissionRequest{signed, create(t, w.host()), create(t, profile(scripts(), nil))} {
			n := strings.Count(strings.Join(w.handle(t, req).Warnings, "\n"), "the trust policy expires")
			if n > 1 || (n == 1) != warned {
				t.Errorf("%s before it expires %s warns %d times", before, req.Kind.Kind, n)
			}
		}
	}
	next := strings.Replace(w.document, "version: 3", "version: 4", 1)
	w.validator.Now = func() time.Time { return expires.Add(-time.Hour) }
	policy := create(t, trustPolicy(next, []string{testkit.Sign(t, w.root, "hostwarrant-policy", []byte(next))}))
	if r := w.handle(t, policy); len(r.Warnings) != 0 {
		t.Errorf("an answer about a policy warns of another's end: %q", r.Warnings)
	}
}

func TestAtMostEightKeysAreNamed(t *testing.T) {
	keys := strings.Split(strings.Repeat("SHA256:x ", 9), " ")[:9]
	a := verify.Answer{Outcome: verify.OutcomeAllow, Decision: decision.Decision{Outcome: decision.Allow, Keys: keys}}
	if got := respond(a, verify.Snapshot{}).AuditAnnotations["keys"]; strings.Count(got, "SHA256:") != 8 {
		t.Errorf("keys %q", got)
	}
}

func TestTheObjectMustBeTheOneTheRequestNames(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		name, namespace string
		want            decision.Reason
	}{
		"the same name":                         {"tls-bootstrap", "", decision.Verified},
		"no name yet, the server generates one": {"", "", decision.Verified},
		"another name":                          {"other", "", decision.Malformed},
		"another namespace":                     {"tls-bootstrap", "elsewhere", decision.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			req := create(t, w.signedProfile(t))
			req.Name, req.Namespace = c.name, c.namespace
			if r := w.handle(t, req); reason(r) != c.want {
				t.Fatalf("%s: %s; want %s", reason(r), r.Result.Message, c.want)
			}
		})
	}
	t.Run("an object of another kind than the request", func(t *testing.T) {
		req := create(t, w.host())
		req.Kind.Kind = object.KindJoinProfile
		if r := w.handle(t, req); reason(r) != decision.Malformed {
			t.Fatalf("%s: %s", reason(r), r.Result.Message)
		}
	})
	t.Run("no JSON at all", func(t *testing.T) {
		req := create(t, w.host())
		req.Object.Raw = []byte("{")
		if r := w.handle(t, req); reason(r) != decision.Malformed || r.Allowed {
			t.Fatalf("%s: %s", reason(r), r.Result.Message)
		}
	})
}

// broken panics when it is asked.
type broken struct{}

func (broken) Snapshot(string, time.Time) (verify.Snapshot, error)    { panic("out of order") }
func (broken) Judge(*object.TrustPolicy, time.Time) decision.Decision { panic("out of order") }

func TestAPanicRefuses(t *testing.T) {
	for _, mode := range []string{"enforce", "warn"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			if mode == "warn" {
				w = warning(t)
			}
			signed := w.signedProfile(t)
			w.validator.Trust = broken{}
			if r := w.handle(t, create(t, signed)); reason(r) != decision.Internal || r.Allowed {
				t.Fatalf("allowed %v, %s: %s", r.Allowed, reason(r), r.Result.Message)
			}
			if w.validator.Trust = w.trust; reason(w.handle(t, create(t, signed))) != decision.Verified {
				t.Fatal("the same object is not admitted without the panic")
			}
		})
	}
}

func TestAnAnswerThatComesTooLateRefuses(t *testing.T) {
	w := newWorld(t)
	req := create(t, w.signedProfile(t))
	late, cancel := context.WithCancel(context.Background())
	if r := w.validator.Handle(late, req); !r.Allowed {
		t.Fatalf("in time: %s", r.Result.Message)
	}
	cancel()
	if r := w.validator.Handle(late, req); r.Allowed || reason(r) != decision.Internal {
		t.Fatalf("too late: allowed %v, %s", r.Allowed, reason(r))
	}
}

// warning is a world whose policy has mode warn for another week.
func warning(t *testing.T) *world {
	t.Helper()
	signer := testkit.NewSigner(t, "ed25519")
	document := strings.Replace(testkit.PolicyDocument(signer), "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-07T00:00:00Z\"", 1)
	return worldWith(t, signer, strings.Replace(document, "2027-05-29", "2026-12-05", 1))
}

func TestModeWarnTurnsARefusalIntoAWarning(t *testing.T) {
	w := warning(t)
	unsigned := create(t, profile(scripts(), nil))
	r := w.handle(t, unsigned)
	if !r.Allowed || reason(r) != decision.Unsigned || r.AuditAnnotations["verdict"] != "warn" {
		t.Fatalf("allowed %v, %v", r.Allowed, r.AuditAnnotations)
	}
	if len(r.Warnings) != 2 || !strings.Contains(r.Warnings[0], "SSHJoinProfile/tls-bootstrap: install: Unsigned") || !strings.Contains(r.Warnings[1], "expires in 4 days") {
		t.Errorf("warnings %q", r.Warnings)
	}
	t.Run("and escapes what the object says", func(t *testing.T) {
		r := w.handle(t, create(t, with(w.host(), "user", "ro\x1b[2Jot\nx"+strings.Repeat("é", 300))))
		if !r.Allowed || len(r.Warnings) != 2 || strings.ContainsAny(r.Warnings[0], "\x1b\n") {
			t.Fatalf("allowed %v, %q", r.Allowed, r.Warnings)
		}
	})
	t.Run("but not for the trust policy itself", func(t *testing.T) {
		r := w.handle(t, create(t, trustPolicy(strings.Replace(w.document, "version: 3", "version: 4", 1), nil)))
		if r.Allowed || reason(r) != decision.PolicyUnsigned {
			t.Fatalf("allowed %v, %s", r.Allowed, reason(r))
		}
	})
	t.Run("but not for a kind that no rule judges", func(t *testing.T) {
		req := unsigned.DeepCopy()
		req.Kind.Kind = "ConfigMap"
		if r := w.handle(t, req); r.Allowed || reason(r) != decision.KindMismatch {
			t.Fatalf("allowed %v, %s", r.Allowed, reason(r))
		}
	})
	t.Run("but not once the policy expired", func(t *testing.T) {
		w.validator.Now = func() time.Time { return time.Date(2026, 12, 6, 0, 0, 0, 0, time.UTC) }
		if r := w.handle(t, unsigned); r.Allowed || reason(r) != decision.PolicyExpired {
			t.Fatalf("allowed %v, %s", r.Allowed, reason(r))
		}
	})
}

func TestModeWarnEndsByItself(t *testing.T) {
	w := warning(t)
	w.document = strings.Replace(strings.Replace(w.document, "2026-12-05", "2027-05-29", 1), "version: 3", "version: 4", 1)
	if d := w.holder.Offer("test", w.policyObject(t, w.document, w.root), testkit.Now()); !d.Allowed() {
		t.Fatal(d.Message())
	}
	ends := time.Date(2026, 12, 7, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now     time.Time
		allowed bool
	}{
		"a second before warnUntil": {ends.Add(-time.Second), true},
		"at warnUntil":              {ends, false},
	} {
		t.Run(name, func(t *testing.T) {
			w.validator.Now = func() time.Time { return c.now }
			if r := w.handle(t, create(t, profile(scripts(), nil))); r.Allowed != c.allowed || reason(r) != decision.Unsigned {
				t.Fatalf("allowed %v, %s", r.Allowed, reason(r))
			}
		})
	}
}

func TestAnswersAreCountedAndAnnotated(t *testing.T) {
	w := newWorld(t)
	yes := true
	refused, dry := create(t, profile(scripts(), nil)), create(t, profile(scripts(), nil))
	dry.DryRun = &yes
	same := update(t, profile(scripts(), nil), profile(scripts(), nil))
	annotations := w.handle(t, refused).AuditAnnotations
	w.handle(t, dry)
	w.handle(t, same)
	want := []counted{
		{object.KindJoinProfile, "deny", decision.Unsigned, false},
		{object.KindJoinProfile, "deny", decision.Unsigned, true},
		{object.KindJoinProfile, "exempt", "", false},
	}
	for i, call := range w.recorder.calls {
		if call != want[i] {
			t.Errorf("call %d: %+v; want %+v", i, call, want[i])
		}
	}
	s, err := w.holder.Snapshot(testkit.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := s.Policy
	for key, want := range map[string]string{"verdict": "deny", "reason": "Unsigned", "policy-digest": p.Digest, "policy-version": "3"} {
		if annotations[key] != want {
			t.Errorf("annotation %s = %q; want %q", key, annotations[key], want)
		}
	}
}
