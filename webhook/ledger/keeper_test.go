package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// world is a Keeper over controller-runtime's fake client.
type world struct {
	*Keeper
	api          client.WithWatch
	root, signer testkit.Signer
	alarms       []string
}

func newWorld(t *testing.T, stored ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).Build()
	w.Keeper = w.keeper(t, w.root)
	return w
}

// keeper is another Keeper, as after a restart, with the given key as anchor.
func (w *world) keeper(t *testing.T, root testkit.Signer) *Keeper {
	t.Helper()
	anchor, err := inforce.ParseAnchor([]byte(root.Line+"\n"), []byte("any"))
	if err != nil {
		t.Fatal(err)
	}
	alarm := func(_ context.Context, reason, _ string) { w.alarms = append(w.alarms, reason) }
	return New(w.api, w.api, anchor, alarm, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

func (w *world) policy(t *testing.T, edit ...string) *trustpolicy.Policy {
	t.Helper()
	return testkit.Policy(t, strings.NewReplacer(edit...).Replace(testkit.PolicyDocument(w.signer)), w.root)
}

// profile is a stored profile with warrants of a serial, signed by s.
func (w *world) profile(t *testing.T, serial int64, word string, s testkit.Signer) *object.JoinProfile {
	t.Helper()
	p := &object.JoinProfile{
		Meta: object.Meta{Kind: object.KindJoinProfile, Name: "tls"}, Version: fmt.Sprint(serial),
		Scripts: map[script.Phase]string{}, Signatures: map[script.Phase]string{},
	}
	for _, phase := range []script.Phase{script.Install, script.Join, script.Leave} {
		text := fmt.Sprintf("#!/bin/sh\n#warrant: v1\n#warrant: profile tls\n#warrant: phase %s\n#warrant: serial %d\n#warrant: not-after %d\n#warrant: target any\n#warrant: end\necho %s\n",
			phase, serial, testkit.Now().Add(24*time.Hour).Unix(), word)
		p.Scripts[phase], p.Signatures[phase] = text, testkit.Sign(t, s, "kpssh", []byte(text))
	}
	return p
}

func (w *world) record(t *testing.T, policy *trustpolicy.Policy, p *object.JoinProfile) {
	t.Helper()
	s := verify.Snapshot{Policy: policy, ClusterID: "any", Now: testkit.Now()}
	if err := w.Record(t.Context(), s, p); err != nil {
		t.Fatal(err)
	}
}

// stored is the serial that the API server holds; -1 where there is no record.
func (w *world) stored(t *testing.T) int64 {
	t.Helper()
	var l v1alpha1.Ledger
	err := w.api.Get(t.Context(), types.NamespacedName{Name: "profile.tls"}, &l)
	if apierrors.IsNotFound(err) {
		return -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return l.Spec.Profile.Serial
}

func (w *world) load(t *testing.T) int {
	t.Helper()
	_, restored, err := w.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func TestTheLedgerOnlyRises(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	policy := w.policy(t)
	for _, c := range []struct {
		name    string
		profile *object.JoinProfile
		want    int64
	}{
		{"by a key that nobody named", w.profile(t, 5, "a", testkit.NewSigner(t, "ed25519")), -1},
		{"a first number near the last", w.profile(t, 999999999999999, "a", w.signer), -1},
		{"the first", w.profile(t, 5, "a", w.signer), 5},
		{"the same", w.profile(t, 5, "a", w.signer), 5},
		{"a lower one", w.profile(t, 4, "a", w.signer), 5},
		{"a higher one", w.profile(t, 6, "a", w.signer), 6},
		{"other content under the same number", w.profile(t, 6, "b", w.signer), 6},
		{"a jump", w.profile(t, 6+1001, "a", w.signer), 6},
		{"the widest step", w.profile(t, 6+1000, "a", w.signer), 1006},
	} {
		w.record(t, policy, c.profile)
		if got := w.stored(t); got != c.want {
			t.Fatalf("%s: the ledger holds %d, not %d", c.name, got, c.want)
		}
	}
	warn := w.policy(t, "version: 3", "version: 4", "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-05T00:00:00Z\"")
	w.record(t, warn, w.profile(t, 1007, "a", testkit.NewSigner(t, "ed25519")))
	if got := w.stored(t); got != 1006 {
		t.Errorf("what mode warn lets in raised the ledger to %d", got)
	}
}

func TestAResetLowersOnce(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	if err := w.RecordPolicy(t.Context(), w.policy(t), nil, testkit.Now()); err != nil {
		t.Fatal(err)
	}
	old := w.profile(t, 4, "a", w.signer)
	w.record(t, w.policy(t), old)
	w.record(t, w.policy(t), w.profile(t, 9, "a", w.signer))
	reset := w.policy(t, "version: 3", "version: 4", "thresholds: {}", "thresholds: {}", "mode: enforce",
		fmt.Sprintf("mode: enforce\nresets: [{profile: tls, serial: 4, digest: %q}]", old.Digest()))
	w.record(t, reset, w.profile(t, 5, "a", w.signer)) // another version than the reset names
	if got := w.stored(t); got != 9 {
		t.Fatalf("the ledger holds %d", got)
	}
	w.record(t, reset, old)
	if got := w.stored(t); got != 4 {
		t.Fatalf("after the reset the ledger holds %d", got)
	}
	if diff := cmp.Diff([]string{"LedgerReset"}, w.alarms); diff != "" {
		t.Error(diff)
	}
	w.record(t, reset, w.profile(t, 9, "a", w.signer))
	w.record(t, reset, old)
	if got := w.stored(t); got != 9 {
		t.Errorf("the reset was used twice: the ledger holds %d", got)
	}
	after := w.keeper(t, w.root)
	if _, _, err := after.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !after.ResetUsed(reset.Resets[0].ID()) || !policyOf(after.record(v1alpha1.LedgerPolicyName)).ResetUsed(reset.Resets[0].ID()) {
		t.Error("after a restart the reset is unused again")
	}
}

func TestAConflictIsReadAgainAndNeverWrittenOver(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	policy := w.policy(t)
	w.record(t, policy, w.profile(t, 5, "a", w.signer))
	// Somebody else, another leader perhaps, was faster.
	var other v1alpha1.Ledger
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: "profile.tls"}, &other); err != nil {
		t.Fatal(err)
	}
	other.Spec.Profile.Serial = 8
	if err := w.api.Update(t.Context(), &other); err != nil {
		t.Fatal(err)
	}
	w.record(t, policy, w.profile(t, 6, "a", w.signer))
	if got := w.stored(t); got != 8 {
		t.Errorf("what somebody else had raised to 8 is %d", got)
	}
	w.record(t, policy, w.profile(t, 9, "a", w.signer))
	if got := w.stored(t); got != 9 {
		t.Errorf("the ledger holds %d", got)
	}
	if m, ok := w.Mark("tls"); !ok || m.Serial != 9 {
		t.Errorf("the mark is %v", m)
	}
}

func TestWritesThatAlwaysConflictEnd(t *testing.T) {
	w := newWorld(t)
	w.client = interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewConflict(v1alpha1.GroupVersion().WithResource("ledgers").GroupResource(), "profile.tls", errors.New("x"))
		},
	})
	err := w.Record(t.Context(), verify.Snapshot{Policy: w.policy(t), ClusterID: "any", Now: testkit.Now()}, w.profile(t, 5, "a", w.signer))
	if err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Error(err)
	}
}

func TestWhatSomebodyDeletedOrLoweredIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	if !w.Lost() {
		t.Fatal("an empty ledger is not known as new or lost")
	}
	w.record(t, w.policy(t), w.profile(t, 5, "a", w.signer))
	if restored := w.load(t); restored != 0 {
		t.Fatalf("%d records were written again though nothing was touched", restored)
	}
	if err := w.api.Delete(t.Context(), &v1alpha1.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "profile.tls"}}); err != nil {
		t.Fatal(err)
	}
	if restored := w.load(t); restored != 1 || w.stored(t) != 5 {
		t.Fatalf("%d restored, and the ledger holds %d", restored, w.stored(t))
	}
	var l v1alpha1.Ledger
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: "profile.tls"}, &l); err != nil {
		t.Fatal(err)
	}
	l.Spec.Profile.Serial = 1
	if err := w.api.Update(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	if restored := w.load(t); restored != 1 || w.stored(t) != 5 {
		t.Errorf("%d restored, and the ledger holds %d", restored, w.stored(t))
	}
}

// Resets that somebody's lower record names stay used: policies/ledger.yaml lets none go.
func TestWhatIsWrittenAgainKeepsResetsThatWereUsed(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	if err := w.RecordPolicy(t.Context(), w.policy(t), nil, testkit.Now()); err != nil {
		t.Fatal(err)
	}
	w.record(t, w.policy(t), w.profile(t, 5, "a", w.signer))
	id := func(n int) v1alpha1.ResetID { return v1alpha1.ResetID(fmt.Sprintf("%064x", n)) }
	get := func(name string) *v1alpha1.Ledger {
		var l v1alpha1.Ledger
		if err := w.api.Get(t.Context(), types.NamespacedName{Name: name}, &l); err != nil {
			t.Fatal(err)
		}
		return &l
	}
	lowered := func(used int) {
		policy, profile := get("policy"), get("profile.tls")
		policy.Spec.Policy.Version = 1
		policy.Spec.Policy.ResetsUsed = nil
		for n := range used {
			policy.Spec.Policy.ResetsUsed = append(policy.Spec.Policy.ResetsUsed, id(n))
		}
		profile.Spec.Profile.Serial, profile.Spec.Profile.Reset = 1, id(used)
		for _, l := range []*v1alpha1.Ledger{policy, profile} {
			if err := w.api.Update(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	lowered(2)
	if restored := w.load(t); restored != 2 {
		t.Fatalf("%d restored", restored)
	}
	if p := get("policy").Spec.Policy; p.Version != 3 || !slices.Equal(p.ResetsUsed, []v1alpha1.ResetID{id(0), id(1)}) {
		t.Errorf("version %d, used %v", p.Version, p.ResetsUsed)
	}
	if p := get("profile.tls").Spec.Profile; p.Serial != 5 || p.Reset != id(2) {
		t.Errorf("%+v", p)
	}
	lowered(1) // near miss: fewer than are known come back
	w.load(t)
	if p := get("policy").Spec.Policy; p.Version != 3 || !slices.Equal(p.ResetsUsed, []v1alpha1.ResetID{id(0), id(1)}) {
		t.Errorf("version %d, used %v", p.Version, p.ResetsUsed)
	}
	if p := get("profile.tls").Spec.Profile; p.Serial != 5 || p.Reset != id(2) {
		t.Errorf("%+v", p) // its own last reset stays
	}
}

func TestARunOfALostLedgerIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	for _, c := range []struct{ serial, want int64 }{{-1, -1}, {7, 7}, {6, 7}, {1_000_001, 7}} {
		if err := w.Ran(t.Context(), "tls", c.serial); err != nil {
			t.Fatal(err)
		}
		if got := w.stored(t); got != c.want {
			t.Fatalf("after a run of %d the ledger holds %d", c.serial, got)
		}
	}
	policy := w.policy(t)
	s := verify.Snapshot{Policy: policy, ClusterID: "any", Now: testkit.Now(), Ledger: w.Keeper}
	if d := verify.JoinProfile(s, w.profile(t, 7, "a", w.signer)); d.Reason != decision.SerialReused {
		t.Errorf("content that nobody remembers: %s", d.Message())
	}
	w.record(t, policy, w.profile(t, 8, "a", w.signer))
	if got := w.stored(t); got != 8 {
		t.Errorf("the ledger holds %d", got)
	}
}

func TestThePinGivesWayToNothingThatIsNotLinked(t *testing.T) {
	w := newWorld(t)
	w.load(t)
	policy := w.policy(t)
	if err := w.RecordPolicy(t.Context(), policy, nil, testkit.Now()); err != nil {
		t.Fatal(err)
	}
	pinned := w.record0(t)
	if pinned.Roots != w.root.Line+"\n" || pinned.Version != 3 || pinned.Digest != v1alpha1.SHA256Digest(policy.Digest) || len(pinned.RenderedSigners) != 1 {
		t.Fatalf("the record is %+v", pinned)
	}
	if !w.Rendered([]string{w.signer.Line}) || w.Rendered([]string{w.root.Line}) || w.Rendered(nil) {
		t.Error("the list of signers that the policy renders is not known")
	}
	writes := w.Writes()
	if err := w.RecordPolicy(t.Context(), policy, nil, testkit.Now()); err != nil || w.Writes() != writes {
		t.Errorf("%v; %d writes although nothing changed", err, w.Writes()-writes)
	}
	foreign := testkit.NewSigner(t, "ed25519")
	after := w.keeper(t, foreign)
	if _, _, err := after.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs := testkit.Policy(t, strings.Replace(testkit.PolicyDocument(w.signer), "version: 3", "version: 4", 1), foreign)
	err := after.RecordPolicy(t.Context(), theirs, nil, testkit.Now())
	if decision.From(err).Reason != decision.AnchorChanged {
		t.Errorf("another anchor: %v", err)
	}
	if diff := cmp.Diff(pinned, w.record0(t)); diff != "" {
		t.Error(diff)
	}
	lower := w.policy(t, "version: 3", "version: 2")
	if err := w.RecordPolicy(t.Context(), lower, nil, testkit.Now()); decision.From(err).Reason != decision.PolicyRollback {
		t.Errorf("a lower version: %v", err)
	}
}

// record0 is the stored record of policies.
func (w *world) record0(t *testing.T) v1alpha1.LedgerPolicy {
	t.Helper()
	var l v1alpha1.Ledger
	if err := w.api.Get(t.Context(), types.NamespacedName{Name: v1alpha1.LedgerPolicyName}, &l); err != nil {
		t.Fatal(err)
	}
	return *l.Spec.Policy
}

func TestANameWithoutRoomIsSaid(t *testing.T) {
	w := newWorld(t)
	for length, fits := range map[int]bool{245: true, 246: false} {
		p := w.profile(t, 5, "a", testkit.NewSigner(t, "ed25519"))
		p.Name = strings.Repeat("a", length)
		err := w.Record(t.Context(), verify.Snapshot{Policy: w.policy(t), ClusterID: "any", Now: testkit.Now()}, p)
		if (err == nil) != fits {
			t.Errorf("%d characters: %v", length, err)
		}
	}
}
