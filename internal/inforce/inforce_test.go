package inforce_test

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// world is a cluster named prod-1, a root and a signer.
type world struct {
	t            *testing.T
	root, signer testkit.Signer
	keeper       *inforce.Keeper
}

// newWorld has a Keeper that has settled with nothing.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := fresh(t)
	w.settle(0)
	return w
}

// fresh has a Keeper that has read nothing.
func fresh(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	w.restart(w.root)
	return w
}

// restart makes a new Keeper with roots of these keys.
func (w *world) restart(roots ...testkit.Signer) {
	w.t.Helper()
	w.keeper = inforce.New(anchor(w.t, roots...))
}

func anchor(t *testing.T, roots ...testkit.Signer) inforce.Anchor {
	t.Helper()
	var lines []string
	for _, r := range roots {
		lines = append(lines, r.Line+"\n")
	}
	return anchorOf(t, strings.Join(lines, ""))
}

func anchorOf(t *testing.T, text string) inforce.Anchor {
	t.Helper()
	a, err := inforce.ParseAnchor([]byte(text), []byte("prod-1\n"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// settle wants so many events.
func (w *world) settle(want int) []inforce.Event {
	w.t.Helper()
	events := w.keeper.Settle(testkit.Now())
	if len(events) != want {
		w.t.Fatalf("%d events: %+v; want %d", len(events), events, want)
	}
	return events
}

func (w *world) document(edits ...string) string {
	edits = append(edits, "{any: {}}", "{prod-1: {}}")
	return strings.NewReplacer(edits...).Replace(testkit.PolicyDocument(w.signer))
}

// version is the document of a version, until May or with another end.
func (w *world) version(n string, edits ...string) string {
	return w.document(append([]string{"version: 3", "version: " + n}, edits...)...)
}

func expired() []string { return []string{"2027-05-29", "2026-11-30"} }

func quickly(t *testing.T, s testkit.Signer, namespace string, text []byte) string {
	t.Helper()
	signature, err := sshsig.Sign(rand.Reader, s, namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(signature)
}

// object is the JSON of a TrustPolicy.
func (w *world) object(document string, chain []statement.Signed, by ...testkit.Signer) []byte {
	w.t.Helper()
	signatures, links := []string{}, []map[string]any{}
	for _, s := range by {
		signatures = append(signatures, quickly(w.t, s, trustpolicy.Namespace, []byte(document)))
	}
	for _, l := range chain {
		links = append(links, map[string]any{"document": string(l.Text), "signatures": l.Signatures})
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"document": document, "signatures": signatures, "rootChain": links},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// signed is the JSON of a TrustPolicy that the root signed.
func (w *world) signed(document string) []byte { return w.object(document, nil, w.root) }

func (w *world) offer(source string, raw []byte, want decision.Reason) inforce.Event {
	w.t.Helper()
	d, e := w.keeper.Offer(source, raw, testkit.Now())
	if d.Reason != want || d.Allowed() != (want == decision.Verified) {
		w.t.Fatalf("%s; want %s", d.Message(), want)
	}
	return e
}

func (w *world) inForce() int {
	if p := w.keeper.Current(); p != nil && !p.Expired(testkit.Now()) {
		return p.Version
	}
	return 0
}

func (w *world) want(version int) {
	w.t.Helper()
	if got := w.inForce(); got != version {
		w.t.Fatalf("version %d is in force; want %d", got, version)
	}
}

// ready wants a reason, or none.
func (w *world) ready(want decision.Reason) {
	w.t.Helper()
	err := w.keeper.Ready(testkit.Now())
	if want == "" && err != nil || want != "" && (err == nil || decision.From(err).Reason != want) {
		w.t.Fatalf("ready: %v; want %q", err, want)
	}
}

// remembered is a ledger after a policy of the world was in force.
func (w *world) remembered(a inforce.Anchor, document string, roots ...testkit.Signer) ledger.Policy {
	w.t.Helper()
	p, err := trustpolicy.Verify(trustpolicy.Signed{
		Document: []byte(document), Signatures: []string{quickly(w.t, roots[0], trustpolicy.Namespace, []byte(document))},
	}, a.Roots, "prod-1", testkit.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return ledger.Policy{}.Pinned(a.Text).After(p)
}

func TestABadOfferIsReportedOnceWithBothDigestsAndTheOldOneStays(t *testing.T) {
	w := newWorld(t)
	w.offer("cluster", w.signed(w.version("3")), decision.Verified)
	inForce := trustpolicy.Digest([]byte(w.version("3")))
	for name, c := range map[string]struct {
		document string
		by       testkit.Signer
		want     decision.Reason
	}{
		"by another root":                   {w.version("4"), w.signer, decision.PolicyUnsigned},
		"a lower version":                   {w.version("2"), w.root, decision.PolicyRollback},
		"the same version with other bytes": {w.version("3", "90d", "91d"), w.root, decision.PolicyEquivocation},
		"expired":                           {w.version("4", expired()...), w.root, decision.PolicyExpired},
		"another cluster":                   {strings.Replace(w.version("4"), "prod-1", "prod-2", 1), w.root, decision.PolicyWrongCluster},
		"a step too far":                    {w.version("1004"), w.root, decision.SerialJump},
	} {
		t.Run(name, func(t *testing.T) {
			raw := w.object(c.document, nil, c.by)
			e := w.offer("cluster", raw, c.want)
			want := &inforce.Refusal{At: testkit.Now(), Source: "cluster", Reason: c.want, Offered: trustpolicy.Digest([]byte(c.document)), InForce: inForce}
			if e.Refused == nil || !strings.Contains(e.Refused.Message, string(c.want)) {
				t.Fatalf("%+v", e)
			}
			want.Message = e.Refused.Message
			if diff := cmp.Diff(want, e.Refused); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want, w.keeper.LastRefusal()); diff != "" {
				t.Error(diff)
			}
			for _, again := range [][]byte{raw, []byte(strings.Replace(string(raw), `"metadata":{`, `"metadata":{"resourceVersion":"7",`, 1))} {
				if e := w.offer("cluster", again, c.want); e.Refused != nil || e.Loaded != nil {
					t.Errorf("reported again: %+v", e)
				}
			}
			w.offer("cluster", w.signed(w.version("3")), decision.Verified)
			if e := w.offer("cluster", raw, c.want); e.Refused != nil || w.keeper.LastRefusal() == nil {
				t.Errorf("reported again after a good one: %+v", e)
			}
			w.want(3)
			w.ready("")
		})
	}
	t.Run("what cannot be read", func(t *testing.T) {
		for i, raw := range []string{"{", "{}", "["} {
			if e := w.offer("file", []byte(raw), decision.Malformed); e.Refused == nil || e.Refused.Offered != "" {
				t.Errorf("%d: %+v", i, e)
			}
			if e := w.offer("file", []byte(raw), decision.Malformed); e.Refused != nil {
				t.Errorf("%d: reported again", i)
			}
		}
		w.want(3)
	})
}

func TestWhatAPolicyTakesAwayIsSaid(t *testing.T) {
	w := newWorld(t)
	other := testkit.NewSigner(t, "ed25519")
	both := strings.Replace(testkit.PolicyDocument(w.signer, other), "{any: {}}", "{prod-1: {}}", 1)
	if e := w.offer("cluster", w.signed(both), decision.Verified); e.Reductions != nil || e.Previous != nil || e.Loaded == nil {
		t.Errorf("the first policy: %+v", e)
	}
	fewer := w.version("4", "thresholds: {}", "thresholds: {join: 1}", "users: [kpssh]", "users: []", "maxValidity: 90d", "maxValidity: 30d")
	e := w.offer("cluster", w.signed(fewer), decision.Verified)
	for _, want := range []string{`joinProfiles.signers: removes signer "signer-1" ` + other.Fingerprint, "joinProfiles.hosts.users: removes kpssh", "maxValidity in days: 90, now 30"} {
		if !strings.Contains(strings.Join(e.Reductions, "\n"), want) {
			t.Errorf("%q does not say %q", e.Reductions, want)
		}
	}
	if e := w.offer("cluster", w.signed(fewer), decision.Verified); e.Loaded != nil || e.Reductions != nil {
		t.Errorf("the same again: %+v", e)
	}
	if e := w.offer("cluster", w.signed(w.version("5", "thresholds: {}", "thresholds: {join: 1}", "maxValidity: 90d", "maxValidity: 30d")), decision.Verified); e.Reductions != nil {
		t.Errorf("one that only widens: %q", e.Reductions)
	}
}

func TestNothingIsJudgedBeforeEverythingWasRead(t *testing.T) {
	w := fresh(t)
	raw := w.signed(w.version("3"))
	parsed, err := object.ParseTrustPolicy(raw)
	if err != nil {
		t.Fatal(err)
	}
	w.offer("file", raw, decision.SnapshotUnavailable)
	if d := w.keeper.Judge(parsed, testkit.Now()); d.Reason != decision.SnapshotUnavailable || d.Allowed() {
		t.Errorf("%s", d.Message())
	}
	if events := w.keeper.Retry(testkit.Now()); events != nil || w.keeper.Current() != nil {
		t.Errorf("%+v", events)
	}
	w.ready(decision.SnapshotUnavailable)
	w.settle(1)
	w.want(3)
	w.ready("")
	if d := w.keeper.Judge(parsed, testkit.Now()); d.Reason != decision.Verified {
		t.Errorf("%s", d.Message())
	}
	w.settle(0) // a second time changes nothing
}

// The newest version that any source holds is the floor, also where it has expired.
func TestAnOlderPolicyNeverWins(t *testing.T) {
	t.Run("a file below the stored one", func(t *testing.T) {
		w := fresh(t)
		w.offer("file", w.signed(w.version("3")), decision.SnapshotUnavailable)
		w.offer("cluster", w.signed(w.version("4")), decision.SnapshotUnavailable)
		w.settle(2)
		w.want(4)
		w.ready("")
	})
	t.Run("a file above the stored one", func(t *testing.T) {
		w := fresh(t)
		w.offer("file", w.signed(w.version("4")), decision.SnapshotUnavailable)
		w.offer("cluster", w.signed(w.version("3")), decision.SnapshotUnavailable)
		w.settle(2)
		w.want(4)
	})
	for name, sources := range map[string][2]string{"a file": {"file", "cluster"}, "the stored one": {"cluster", "file"}} {
		t.Run(name+" below one that expired", func(t *testing.T) {
			w := fresh(t)
			w.offer(sources[0], w.signed(w.version("3")), decision.SnapshotUnavailable)
			w.offer(sources[1], w.signed(w.version("4", expired()...)), decision.SnapshotUnavailable)
			w.settle(2)
			w.want(0)
			w.ready(decision.PolicyExpired)
			w.offer("other", w.signed(w.version("3")), decision.PolicyRollback)
			w.offer(sources[1], w.signed(w.version("5")), decision.Verified)
			w.want(5)
			w.ready("")
		})
	}
	t.Run("one that expired on the way does not end the one in force, but bounds what follows", func(t *testing.T) {
		w := newWorld(t)
		w.offer("cluster", w.signed(w.version("3")), decision.Verified)
		w.offer("file", w.signed(w.version("6", expired()...)), decision.PolicyExpired)
		w.want(3)
		w.ready("")
		w.offer("cluster", w.signed(w.version("3")), decision.Verified)
		w.offer("cluster", w.signed(w.version("5")), decision.PolicyRollback)
		w.offer("cluster", w.signed(w.version("7")), decision.Verified)
		w.want(7)
	})
	t.Run("one that is expired and by nobody bounds nothing", func(t *testing.T) {
		w := newWorld(t)
		w.offer("file", w.object(w.version("6", expired()...), nil, w.signer), decision.PolicyUnsigned)
		w.offer("cluster", w.signed(w.version("5")), decision.Verified)
	})
	t.Run("one for later bounds nothing", func(t *testing.T) {
		w := newWorld(t)
		w.offer("file", w.signed(w.version("6", "2026-11-29", "2026-12-05")), decision.NotYetValid)
		w.offer("cluster", w.signed(w.version("5")), decision.Verified)
		if events := w.keeper.Retry(time.Date(2026, 12, 5, 0, 0, 0, 0, time.UTC)); len(events) != 1 || events[0].Source != "file" {
			t.Fatalf("%+v", events)
		}
		w.want(6)
	})
}

func TestWhatTheClusterRemembersHoldsOverRestarts(t *testing.T) {
	w := fresh(t)
	a := anchor(t, w.root)
	known := w.remembered(a, w.version("5"), w.root)
	for name, c := range map[string]struct {
		document string
		want     decision.Reason
	}{
		"the same":                {w.version("5"), decision.Verified},
		"the next":                {w.version("6"), decision.Verified},
		"an older one":            {w.version("4"), decision.PolicyRollback},
		"the same in other bytes": {w.version("5", "90d", "91d"), decision.PolicyEquivocation},
		"a step too far":          {w.version("1006"), decision.SerialJump},
		"the last that is not":    {w.version("1005"), decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			w.restart(w.root)
			w.keeper.Remember(known)
			w.settle(0)
			w.offer("cluster", w.signed(c.document), c.want)
			if c.want != decision.Verified {
				w.ready(decision.PolicyUnavailable)
			}
		})
	}
	t.Run("an empty ledger", func(t *testing.T) {
		w.restart(w.root)
		w.settle(0)
		w.offer("cluster", w.signed(w.version("4")), decision.Verified)
	})
}

// link names roots of a version, as a statement of the cluster.
func link(t *testing.T, version int64, keys []testkit.Signer, by ...testkit.Signer) statement.Signed {
	t.Helper()
	s := &statement.Statement{
		Kind: statement.KindRoots, Serial: version, Issued: testkit.Now().Add(-time.Hour).Unix(), Cluster: "prod-1",
		Roots: &statement.Roots{Threshold: 1},
	}
	for _, k := range keys {
		s.Roots.Keys = append(s.Roots.Keys, k.PublicKey())
	}
	signed := statement.Signed{Text: s.Text()}
	for _, k := range by {
		signed.Signatures = append(signed.Signatures, quickly(t, k, statement.Namespace, signed.Text))
	}
	return signed
}

func TestAnAnchorThatIsNotTheFirstMustBeLinkedToIt(t *testing.T) {
	w := fresh(t)
	next, foreign := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	first := anchor(t, w.root)
	pinned := w.remembered(first, w.version("3"), w.root)
	second := link(t, 2, []testkit.Signer{next}, w.root, next)
	chain := []statement.Signed{second}
	linked := w.object(w.version("4", "rootVersion: 1", "rootVersion: 2"), chain, next)
	cases := map[string]struct {
		anchor inforce.Anchor
		pin    ledger.Policy
		offer  []byte
		before decision.Reason // readiness without an offer
		want   decision.Reason
	}{
		"the same":                  {first, pinned, w.signed(w.version("4")), decision.PolicyUnavailable, decision.Verified},
		"none pinned yet":           {anchor(t, foreign), ledger.Policy{}, w.object(w.version("4"), nil, foreign), decision.PolicyUnavailable, decision.Verified},
		"the next, with its link":   {anchorOf(t, string(second.Text)), pinned, linked, decision.AnchorChanged, decision.Verified},
		"the first, later":          {first, pinned.Pinned(second.Text), linked, decision.AnchorChanged, decision.Verified},
		"a foreign one":             {anchor(t, foreign), pinned, w.object(w.version("4"), nil, foreign), decision.AnchorChanged, decision.AnchorChanged},
		"a foreign one beside ours": {anchor(t, w.root, foreign), pinned, w.object(w.version("4"), nil, w.root, foreign), decision.AnchorChanged, decision.AnchorChanged},
		"a foreign link":            {anchorOf(t, string(link(t, 2, []testkit.Signer{foreign}).Text)), pinned, w.object(w.version("4", "rootVersion: 1", "rootVersion: 2"), []statement.Signed{link(t, 2, []testkit.Signer{foreign}, foreign)}, foreign), decision.AnchorChanged, decision.AnchorChanged},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w.keeper = inforce.New(c.anchor)
			w.keeper.Remember(c.pin)
			w.settle(0)
			w.ready(c.before)
			parsed, err := object.ParseTrustPolicy(c.offer)
			if err != nil {
				t.Fatal(err)
			}
			if d := w.keeper.Judge(parsed, testkit.Now()); d.Reason != c.want {
				t.Errorf("judged: %s; want %s", d.Message(), c.want)
			}
			w.ready(c.before) // judging changes nothing
			w.offer("cluster", c.offer, c.want)
			if c.want == decision.Verified {
				w.want(4)
				w.ready("")
				return
			}
			w.want(0)
			w.ready(decision.AnchorChanged)
		})
	}
}

// What is pinned while a reader runs is another start's business: it is alarmed, and ends nothing.
func TestALedgerThatChangesItsPinIsAlarmedAndEndsNothing(t *testing.T) {
	w := newWorld(t)
	w.offer("cluster", w.signed(w.version("3")), decision.Verified)
	if w.keeper.AnchorDiffers() {
		t.Error("differs from nothing")
	}
	w.keeper.Remember(w.remembered(anchor(t, w.root), w.version("3"), w.root))
	if w.keeper.AnchorDiffers() {
		t.Error("differs from its own")
	}
	w.keeper.Remember(ledger.Policy{}.Pinned([]byte(w.signer.Line)))
	if !w.keeper.AnchorDiffers() {
		t.Error("a foreign pin is not noticed")
	}
	w.keeper.Retry(testkit.Now())
	w.want(3)
	w.ready("")
}

func TestTwoDocumentsOfOneRootVersionEndReadiness(t *testing.T) {
	w := fresh(t)
	next, twin := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	two := "rootVersion: 2"
	first := w.object(w.version("4", "rootVersion: 1", two), []statement.Signed{link(t, 2, []testkit.Signer{next}, w.root, next)}, next)
	forked := w.object(w.version("5", "rootVersion: 1", two), []statement.Signed{link(t, 2, []testkit.Signer{twin}, w.root, twin)}, twin)
	better := w.object(w.version("6", "rootVersion: 1", two), []statement.Signed{link(t, 2, []testkit.Signer{next}, w.root, next)}, next)
	w.settle(0)
	w.offer("cluster", first, decision.Verified)
	w.ready("")
	w.offer("cluster", forked, decision.RootFork)
	w.ready(decision.RootFork)
	if w.inForce() != 4 {
		t.Error("the one in force is gone")
	}
	w.offer("cluster", better, decision.Verified)
	w.ready("")

	t.Run("over a restart", func(t *testing.T) {
		known := ledger.Policy{}.Pinned(anchor(t, w.root).Text).After(w.keeper.Current())
		w.restart(w.root)
		w.keeper.Remember(known)
		w.offer("cluster", forked, decision.SnapshotUnavailable)
		w.settle(1)
		w.ready(decision.RootFork)
		w.offer("cluster", better, decision.Verified)
		w.ready("")
	})
	t.Run("but not by a link that nobody signed", func(t *testing.T) {
		unsigned := w.object(w.version("7", "rootVersion: 1", two), []statement.Signed{link(t, 2, []testkit.Signer{twin}, twin)}, twin)
		if d, _ := w.keeper.Offer("cluster", unsigned, testkit.Now()); d.Allowed() {
			t.Fatal("taken")
		}
		w.ready("")
	})
}

func TestReadyOnlyWithAPolicyThatIsInForce(t *testing.T) {
	w := newWorld(t)
	w.ready(decision.PolicyUnavailable)
	w.offer("cluster", w.object(w.version("3"), nil), decision.PolicyUnsigned)
	if err := w.keeper.Ready(testkit.Now()); err == nil || !strings.Contains(err.Error(), "last refusal: TrustPolicy/cluster: PolicyUnsigned") {
		t.Errorf("%v", err)
	}
	w.offer("cluster", w.signed(w.version("3")), decision.Verified)
	expires := time.Date(2027, 5, 29, 0, 0, 0, 0, time.UTC)
	if err := w.keeper.Ready(expires.Add(-time.Second)); err != nil {
		t.Errorf("in force: %v", err)
	}
	if err := w.keeper.Ready(expires); err == nil || decision.From(err).Reason != decision.PolicyExpired {
		t.Errorf("%v", err)
	}
}

func TestAPolicyWithAUIDIsForThatClusterAlone(t *testing.T) {
	uid := "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b"
	for given, want := range map[string]decision.Reason{
		uid:                                    decision.Verified,
		"":                                     decision.Verified, // nobody could tell: the id alone says it
		"5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5c": decision.PolicyWrongCluster,
	} {
		w := fresh(t)
		w.keeper.Identify(given)
		w.settle(0)
		w.offer("cluster", w.signed(strings.Replace(w.version("3"), "{prod-1: {}}", "{prod-1: {uid: "+uid+"}}", 1)), want)
	}
}

// The policy of a cluster that was made anew under its old name is no floor for this one's, expired or not.
func TestAnExpiredPolicyOfAnotherUIDBoundsNothing(t *testing.T) {
	uid := "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5b"
	for given, bounds := range map[string]bool{uid: true, "": true, "5f3c2a10-7d0e-4a52-9f4e-0c1d2e3f4a5c": false} {
		w := fresh(t)
		w.keeper.Identify(given)
		w.settle(0)
		old := strings.Replace(w.version("900", expired()...), "{prod-1: {}}", "{prod-1: {uid: "+uid+"}}", 1)
		w.offer("cluster", w.signed(old), decision.PolicyExpired)
		if held := w.keeper.Current() != nil; held != bounds {
			t.Errorf("UID %q: held is %v", given, held)
		}
		want := decision.Verified
		if bounds {
			want = decision.PolicyRollback
		}
		w.offer("file", w.signed(w.version("4")), want)
	}
}

// Refusals that are remembered not to be reported again are bounded.
func TestManyBadOffersTakeNoMemory(t *testing.T) {
	w := newWorld(t)
	reported := 0
	for i := range 200 {
		raw := w.object(w.version("3")+strings.Repeat("#\n", i), nil)
		for range 2 {
			if e := w.offer("cluster", raw, decision.PolicyUnsigned); e.Refused != nil {
				reported++
			}
		}
	}
	if reported != 200 {
		t.Errorf("%d were reported; want 200", reported)
	}
}
