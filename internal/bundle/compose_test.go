package bundle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// world is one bundle over time: what is stored changes, what is remembered is what was answered before.
type world struct {
	bundle.Set
	stored map[string]bundle.Candidate
}

func newWorld(fragments ...*fragment.Fragment) *world {
	w := &world{stored: map[string]bundle.Candidate{}}
	w.Namespace, w.Name, w.Known.Marks = "pool", "redis", map[ledger.Slot]ledger.SlotMark{}
	w.store(fragments...)
	return w
}

func (w *world) store(fragments ...*fragment.Fragment) {
	for _, f := range fragments {
		w.stored[f.Name] = bundle.Candidate{Namespace: "pool", Name: f.Name, Fragment: f}
	}
}

// refuse is what is stored under the name, as somebody judged it.
func (w *world) refuse(name string, why decision.Reason) {
	w.stored[name] = bundle.Candidate{Namespace: "pool", Name: name, Refusal: decision.Errorf(why, "by the test")}
}

// refuseSound is content that is signed, and that the policy does not allow.
func (w *world) refuseSound(f *fragment.Fragment, why decision.Reason) {
	w.stored[f.Name] = bundle.Candidate{Namespace: "pool", Name: f.Name, Fragment: f, Refusal: decision.Errorf(why, "by the test")}
}

// compose asks, and remembers as a controller does.
func (w *world) compose() bundle.Outcome {
	w.Candidates = nil
	for _, c := range w.stored { // in any order
		w.Candidates = append(w.Candidates, c)
	}
	o := bundle.Compose(w.Set)
	w.Known.Alarmed = o.Alarmed
	if o.Verdict != bundle.Refused {
		w.Known.Last = o.Composite
	}
	for slot, mark := range o.Marks {
		w.Known.Marks[slot] = mark
	}
	return o
}

// restart forgets all but what a ledger keeps.
func (w *world) restart() { w.Known = bundle.Known{Marks: w.Known.Marks} }

func (w *world) mark(member string) int64 {
	class, name, _ := strings.Cut(member, "/")
	return w.Known.Marks[ledger.Slot{Namespace: "pool", Bundle: "redis", Class: class, Name: name}].Version
}

func wantAccepted(t *testing.T, o bundle.Outcome, want ...string) {
	t.Helper()
	if o.Verdict != bundle.Accepted || o.Refusal != nil {
		t.Fatalf("verdict %d: %v", o.Verdict, o.Refusal)
	}
	if diff := cmp.Diff(want, members(o.Composite)); diff != "" {
		t.Error(diff)
	}
}

// wantRefused wants the set refused for that reason, the named members in effect, and no mark moved.
func wantRefused(t *testing.T, o bundle.Outcome, why decision.Reason, kept ...string) {
	t.Helper()
	if o.Verdict != bundle.Refused || o.Refusal == nil || o.Refusal.Reason != why {
		t.Fatalf("verdict %d: %v, want refused, %s", o.Verdict, o.Refusal, why)
	}
	if diff := cmp.Diff(kept, members(o.Composite)); diff != "" {
		t.Error(diff)
	}
	if o.Marks != nil {
		t.Errorf("marks move: %v", o.Marks)
	}
}

func three() []*fragment.Fragment {
	return []*fragment.Fragment{runs("base/b", alice, 3, "/b"), runs("admission/a", bob, 3, "/a"), runs("overlay/o", bob, 3, "/o")}
}

const base, admission, overlay = "base/b", "admission/a", "overlay/o"

func TestZeroOutcomeRefuses(t *testing.T) {
	var o bundle.Outcome
	if o.Verdict != bundle.Refused || o.Composite != nil {
		t.Errorf("%+v", o)
	}
	wantRefused(t, bundle.Compose(bundle.Set{}), decision.MemberMissing)
}

// D1, D2, D3: the order of listing, equal programs, equal peers (TestMerge, TestOrderOfListingMakesNoDifference), as a set.
func TestASetIsAccepted(t *testing.T) {
	w := newWorld(three()...)
	o := w.compose()
	wantAccepted(t, o, base, admission, overlay)
	if len(o.Marks) != 3 || w.mark(base) != 3 || o.Alarm || o.Retry || o.Left != nil || o.Refusals != nil {
		t.Errorf("%+v", o)
	}
	if o := w.compose(); len(o.Marks) != 0 || o.Composite.Root != w.Known.Last.Root {
		t.Errorf("the same set again moves %v", o.Marks)
	}
}

// D4: what merely carries the bundle's labels is left out, whatever is wrong with it.
func TestJunkBesideABundle(t *testing.T) {
	for _, why := range []decision.Reason{
		decision.Unsigned, decision.Tampered, decision.SignatureInvalid, decision.SignatureMalformed, decision.NotCanonical, decision.KindMismatch,
		decision.Malformed, decision.TooLarge, decision.SignerUnknown, decision.PathRefused, decision.VersionRollback, decision.SnapshotUnavailable, decision.Internal,
	} {
		t.Run(string(why), func(t *testing.T) {
			w := newWorld(three()...)
			w.refuse("junk", why)
			for range 2 { // before and after the bundle is known
				o := w.compose()
				wantAccepted(t, o, base, admission, overlay)
				if len(o.Refusals) != 1 || o.Refusals[0].Name != "junk" || o.Refusals[0].Known || o.Refusals[0].Error.Reason != why {
					t.Errorf("refusals %+v", o.Refusals)
				}
				if o.Alarm || o.Retry != (why == decision.SnapshotUnavailable) {
					t.Errorf("alarm %v, retry %v", o.Alarm, o.Retry)
				}
			}
		})
	}
}

// D5: a member that was tampered with keeps the last composite, and alarms once for each time.
func TestATamperedMember(t *testing.T) {
	for _, why := range []decision.Reason{decision.Tampered, decision.SignatureInvalid} {
		w := newWorld(three()...)
		w.compose()
		for range 2 {
			w.refuse("b", why)
			o := w.compose()
			wantRefused(t, o, why, base, admission, overlay)
			if !o.Alarm || o.Refusal.Where != "b" || !o.Refusals[0].Known {
				t.Errorf("%+v", o)
			}
			if o := w.compose(); o.Alarm {
				t.Error("alarmed twice for one fault")
			}
			w.refuse("b", decision.Unsigned) // no clean set between
			wantRefused(t, w.compose(), decision.Unsigned, base, admission, overlay)
			w.refuse("b", why)
			if o := w.compose(); o.Alarm {
				t.Error("alarmed again without a clean set between")
			}
			w.store(three()...)
			wantAccepted(t, w.compose(), base, admission, overlay)
		}
	}
}

// A1, A3 and what else is wrong with a member: kept, and no alarm.
func TestAMemberThatIsRefused(t *testing.T) {
	for _, why := range []decision.Reason{
		decision.Unsigned, decision.SignatureMalformed, decision.NotCanonical, decision.KindMismatch, decision.Malformed, decision.TooLarge, decision.SignerUnknown,
		decision.PathRefused, decision.PolicyExpired, decision.PolicyUnavailable, decision.Internal,
	} {
		t.Run(string(why), func(t *testing.T) {
			w := newWorld(three()...)
			w.compose()
			w.refuse("b", why)
			o := w.compose()
			wantRefused(t, o, why, base, admission, overlay)
			if o.Alarm || o.Retry {
				t.Errorf("alarm %v, retry %v", o.Alarm, o.Retry)
			}
		})
	}
	t.Run("a member nobody judged", func(t *testing.T) {
		w := newWorld(three()...)
		w.compose()
		w.stored["b"] = bundle.Candidate{Namespace: "pool", Name: "b"}
		wantRefused(t, w.compose(), decision.Internal, base, admission, overlay)
	})
}

// D6: one old version refuses the whole set, and no other mark moves.
func TestRollback(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.store(runs("base/b", alice, 2, "/b"), runs("overlay/o", bob, 4, "/o"))
	o := w.compose()
	wantRefused(t, o, decision.VersionRollback, base, admission, overlay)
	if o.Alarm || w.mark(overlay) != 3 || o.Refusal.Where != "b" {
		t.Errorf("alarm %v, mark %d, %v", o.Alarm, w.mark(overlay), o.Refusal)
	}
	w.restart()
	wantRefused(t, w.compose(), decision.VersionRollback)
	w.store(runs("base/b", alice, 3, "/b"))
	wantAccepted(t, w.compose(), base, admission, overlay)
	if w.mark(overlay) != 4 {
		t.Errorf("mark %d", w.mark(overlay))
	}
}

// A member that is gone comes back no older than it was, neither by what is stored nor by what others say of it.
func TestRollbackOfAMemberThatLeft(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	delete(w.stored, "o")
	wantAccepted(t, w.compose(), base, admission)
	w.store(runs("overlay/o", bob, 2, "/o"))
	wantRefused(t, w.compose(), decision.VersionRollback, base, admission)
	w.refuse("o", decision.VersionRollback)
	wantRefused(t, w.compose(), decision.VersionRollback, base, admission)
	w.refuse("o", decision.Unsigned) // while junk of that name is no more than junk
	wantAccepted(t, w.compose(), base, admission)
}

// D7, H9 and the rest of the version rules.
func TestVersions(t *testing.T) {
	reordered := runs("base/b", alice, 3, "/b")
	reordered.Bytes = hexOf("another order")
	for name, tt := range map[string]struct {
		member *fragment.Fragment
		want   decision.Reason
		mark   int64
	}{
		"the same":                         {runs("base/b", alice, 3, "/b"), decision.Verified, 3},
		"the next":                         {runs("base/b", alice, 4, "/x"), decision.Verified, 4},
		"the last":                         {runs("base/b", alice, 2, "/b"), decision.VersionRollback, 3},
		"equal, with other content":        {runs("base/b", alice, 3, "/x"), decision.VersionEquivocated, 3},
		"equal, with lists in other order": {reordered, decision.VersionEquivocated, 3},
		"1000 ahead":                       {runs("base/b", alice, 1003, "/b"), decision.Verified, 1003},
		"1001 ahead":                       {runs("base/b", alice, 1004, "/b"), decision.SerialJump, 3},
		"the last of all numbers":          {runs("base/b", alice, 1<<63-1, "/b"), decision.SerialJump, 3},
		"the same name in another class":   {runs("site/b", alice, 1, "/b"), decision.Verified, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(three()...)
			w.compose()
			w.store(tt.member)
			o := w.compose()
			if got := reasonOf(o); got != tt.want || w.mark(base) != tt.mark {
				t.Errorf("got %s and mark %d, want %s and %d", got, w.mark(base), tt.want, tt.mark)
			}
		})
	}
	t.Run("the first", func(t *testing.T) {
		for version, want := range map[int64]decision.Reason{0: decision.Verified, 1_000_000: decision.Verified, 1_000_001: decision.MemberMissing, 1<<63 - 1: decision.MemberMissing} {
			w := newWorld(runs("base/b", alice, version, "/b"))
			o := w.compose()
			if got := reasonOf(o); got != want || (want == decision.MemberMissing && o.Refusals[0].Error.Reason != decision.SerialJump) {
				t.Errorf("version %d: %s, %+v", version, got, o.Refusals)
			}
		}
	})
	t.Run("a reset", func(t *testing.T) {
		w := newWorld(three()...)
		w.compose()
		old := runs("base/b", alice, 2, "/b")
		w.store(old)
		w.Known.Reset = func(slot ledger.Slot, mark ledger.SlotMark) bool {
			return slot.String() == "pool/redis/base/b" && mark == ledger.SlotMarkOf(old)
		}
		wantAccepted(t, w.compose(), base, admission, overlay)
		if w.mark(base) != 2 {
			t.Errorf("mark %d", w.mark(base))
		}
		w.store(runs("base/b", alice, 1, "/b"))
		wantRefused(t, w.compose(), decision.VersionRollback, base, admission, overlay)
	})
	t.Run("offline nobody keeps marks", func(t *testing.T) {
		w := newWorld(runs("base/b", alice, 1<<63-1, "/b"))
		w.Known.Marks = nil
		wantAccepted(t, bundle.Compose(bundle.Set{Namespace: "pool", Name: "redis", Candidates: []bundle.Candidate{w.stored["b"]}}), base)
	})
}

func reasonOf(o bundle.Outcome) decision.Reason {
	if o.Refusal == nil {
		return decision.Verified
	}
	return o.Refusal.Reason
}

// D8: what was signed for another bundle, or lives elsewhere, is none of this one's business.
func TestForeignFragments(t *testing.T) {
	w := newWorld(three()...)
	foreign := runs("base/f", alice, 1, "/f")
	foreign.Bundle = "nginx"
	w.store(foreign)
	w.refuseSound(func() *fragment.Fragment { f := *foreign; f.Name = "g"; return &f }(), decision.SignerUnknown)
	w.stored["elsewhere"] = bundle.Candidate{Namespace: "web", Name: "elsewhere", Fragment: runs("base/elsewhere", alice, 1, "/e")}
	w.stored["broken"] = bundle.Candidate{Namespace: "web", Name: "b", Refusal: decision.Errorf(decision.Tampered, "there")}
	for range 2 {
		o := w.compose()
		wantAccepted(t, o, base, admission, overlay)
		if o.Refusals != nil {
			t.Errorf("refusals %+v", o.Refusals)
		}
	}
	// In a member's place it is not overlooked.
	f := runs("base/b", alice, 4, "/b")
	f.Bundle = "nginx"
	w.store(f)
	wantRefused(t, w.compose(), decision.ClassUnknown, base, admission, overlay)
	f = runs("base/b", alice, 4, "/b")
	f.Kind, f.Rules = fragment.KindRules, &fragment.RulesSpec{}
	w.store(f)
	wantRefused(t, w.compose(), decision.KindMismatch, base, admission, overlay)
}

// D9: what cannot be read just now changes nothing, and alarms nobody.
func TestAMemberThatCannotBeRead(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.refuse("b", decision.SnapshotUnavailable)
	o := w.compose()
	wantRefused(t, o, decision.SnapshotUnavailable, base, admission, overlay)
	if o.Alarm || !o.Retry {
		t.Errorf("alarm %v, retry %v", o.Alarm, o.Retry)
	}
	w.refuse("o", decision.Tampered) // must not hide behind it
	if o := w.compose(); !o.Alarm || o.Refusal.Reason != decision.Tampered || !o.Retry {
		t.Errorf("%+v", o)
	}
}

// D10, D11: a profile that has the bundle's name gives way to the composite, and never stands in for it.
func TestAProfileOfTheBundlesName(t *testing.T) {
	flat := runs("base/redis", alice, 1, "/flat")
	unlabelled := *flat
	unlabelled.Bundle, unlabelled.Class = "", ""
	for name, tt := range map[string]func(*world){
		"unsigned":         func(w *world) { w.refuse("redis", decision.Unsigned) },
		"signed":           func(w *world) { w.store(&unlabelled) },
		"signed as a part": func(w *world) { w.store(flat) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tt(w)
			o := w.compose()
			wantRefused(t, o, decision.MemberMissing)
			w.store(three()...)
			w.refuse("junk", decision.Tampered)
			o = w.compose()
			wantAccepted(t, o, base, admission, overlay)
			if first := o.Refusals[0]; first.Name != "redis" || first.Error.Reason != decision.CompositeForeign || first.Known {
				t.Errorf("refusals %+v", o.Refusals)
			}
		})
	}
}

// D11: nothing admissible, and nothing kept: no profile.
func TestNothingToShow(t *testing.T) {
	w := newWorld()
	wantRefused(t, w.compose(), decision.MemberMissing)
	for i := range 3 {
		w.refuse(fmt.Sprint("junk", i), decision.Unsigned)
	}
	o := w.compose()
	wantRefused(t, o, decision.MemberMissing)
	if len(o.Refusals) != 3 || !strings.Contains(o.Refusal.What, "none of 3 candidates") {
		t.Errorf("%+v", o)
	}
}

// A1 to R4: after a restart the marks tell who is a member, so that a tampered one does not become junk.
func TestATamperedMemberAfterARestart(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.restart()
	w.refuse("b", decision.Tampered)
	wantRefused(t, w.compose(), decision.Tampered)
	w.store(three()...)
	wantAccepted(t, w.compose(), base, admission, overlay)
	// Marks of other bundles, places and kinds make nobody a member.
	for _, slot := range []ledger.Slot{
		{Namespace: "pool", Bundle: "nginx", Class: "base", Name: "junk"},
		{Namespace: "web", Bundle: "redis", Class: "base", Name: "junk"},
		{Namespace: "pool", Bundle: "redis", Class: "seccomp/base", Name: "junk"},
	} {
		w.restart()
		w.Known.Marks[slot] = ledger.SlotMark{Version: 1}
		w.refuse("junk", decision.Tampered)
		wantAccepted(t, w.compose(), base, admission, overlay)
	}
}

// T7: presence is not signed, so that the policy says who must be there.
func TestRequiredMembers(t *testing.T) {
	w := newWorld(three()...)
	w.Policy.Required = []trustpolicy.Member{{Class: "base", Name: "b"}, {Class: "overlay", Name: "o"}}
	wantAccepted(t, w.compose(), base, admission, overlay)
	t.Run("deleted", func(t *testing.T) {
		delete(w.stored, "o")
		o := w.compose()
		wantRefused(t, o, decision.MemberMissing, base, admission, overlay)
		if o.Refusal.Where != overlay || !strings.Contains(o.Refusal.What, "not there") || o.Refusal.Hint == "" || o.Left != nil {
			t.Errorf("%+v, left %v", o.Refusal, o.Left)
		}
	})
	t.Run("all deleted", func(t *testing.T) {
		w.stored = map[string]bundle.Candidate{}
		wantRefused(t, w.compose(), decision.MemberMissing, base, admission, overlay)
	})
	t.Run("under another class", func(t *testing.T) {
		w.store(three()...)
		w.store(runs("site/o", bob, 4, "/o"))
		wantRefused(t, w.compose(), decision.MemberMissing, base, admission, overlay)
	})
	t.Run("back again", func(t *testing.T) {
		w.store(three()...)
		wantAccepted(t, w.compose(), base, admission, overlay)
	})
	t.Run("never there", func(t *testing.T) {
		w := newWorld(three()[:1]...)
		w.Policy.Required = []trustpolicy.Member{{Class: "overlay", Name: "o"}}
		wantRefused(t, w.compose(), decision.MemberMissing)
		w.refuse("o", decision.Tampered)
		o := w.compose()
		wantRefused(t, o, decision.MemberMissing)
		if o.Alarm || !strings.Contains(o.Refusal.What, "is refused: Tampered") {
			t.Errorf("%+v, alarm %v", o.Refusal, o.Alarm)
		}
	})
}

// A member that nobody requires may leave, and it is said who left.
func TestAMemberLeaves(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	delete(w.stored, "o")
	o := w.compose()
	wantAccepted(t, o, base, admission)
	if len(o.Left) != 1 || o.Left[0].Name != "o" {
		t.Errorf("left %v", o.Left)
	}
	if o := w.compose(); o.Left != nil {
		t.Errorf("left again: %v", o.Left)
	}
	w.stored = map[string]bundle.Candidate{}
	wantRefused(t, w.compose(), decision.MemberMissing, base, admission)
}

// R6: the roots take a member out; what bears its name then is junk, and old versions of it stay out.
func TestTombstones(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.Policy.Tombstones = []trustpolicy.Tombstone{{Class: "overlay", Name: "o", Version: 5}}
	o := w.compose()
	wantAccepted(t, o, base, admission)
	if len(o.Left) != 1 || o.Refusals[0].Error.Reason != decision.VersionRollback || o.Refusals[0].Known {
		t.Errorf("left %v, refusals %+v", o.Left, o.Refusals)
	}
	for name, tt := range map[string]struct {
		change func()
		want   []string
	}{
		"the version it names":    {func() { w.store(runs("overlay/o", bob, 5, "/o")) }, []string{base, admission}},
		"unsigned junk":           {func() { w.refuse("o", decision.Unsigned) }, []string{base, admission}},
		"tampered junk":           {func() { w.refuse("o", decision.Tampered) }, []string{base, admission}},
		"refused for its version": {func() { w.refuse("o", decision.VersionRollback) }, []string{base, admission}},
		"nothing":                 {func() { delete(w.stored, "o") }, []string{base, admission}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restart := range []bool{false, true} {
				if restart {
					w.restart()
				}
				tt.change()
				wantAccepted(t, w.compose(), tt.want...)
			}
		})
	}
	t.Run("a higher version", func(t *testing.T) {
		w.store(runs("overlay/o", bob, 6, "/o"))
		wantAccepted(t, w.compose(), base, admission, overlay)
		w.refuse("o", decision.Unsigned)
		wantRefused(t, w.compose(), decision.Unsigned, base, admission, overlay)
	})
	t.Run("of another class", func(t *testing.T) {
		w := newWorld(three()...)
		w.Policy.Tombstones = []trustpolicy.Tombstone{{Class: "base", Name: "o", Version: 5}}
		wantAccepted(t, w.compose(), base, admission, overlay)
	})
}

// A bundle goes when the roots buried all of it, and not before.
func TestABundleIsTakenAway(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.refuse("junk", decision.Unsigned)
	w.Policy.Tombstones = []trustpolicy.Tombstone{{Class: "overlay", Name: "o", Version: 3}, {Class: "admission", Name: "a", Version: 3}, {Class: "base", Name: "b", Version: 2}}
	delete(w.stored, "b")
	wantRefused(t, w.compose(), decision.MemberMissing, base, admission, overlay)
	w.Policy.Tombstones[2].Version = 3
	for range 2 {
		o := w.compose()
		if o.Verdict != bundle.Dissolved || o.Composite != nil || o.Refusal != nil || len(o.Marks) != 0 {
			t.Errorf("%+v", o)
		}
		w.restart()
	}
}

// When the policy turns against what a member says, the member goes; it is not kept for being known.
func TestThePolicyTurnsAgainstAMember(t *testing.T) {
	for _, why := range []decision.Reason{
		decision.SignerRevoked, decision.SignerUnknown, decision.SignerScope, decision.ClassUnknown, decision.PathRefused, decision.ValueRefused,
	} {
		t.Run(string(why), func(t *testing.T) {
			w := newWorld(three()...)
			w.compose()
			w.refuseSound(three()[2], why)
			o := w.compose()
			wantAccepted(t, o, base, admission)
			if len(o.Left) != 1 || o.Left[0].Name != "o" || o.Refusals[0].Error.Reason != why {
				t.Errorf("left %v, refusals %+v", o.Left, o.Refusals)
			}
		})
	}
	t.Run("but not by other content", func(t *testing.T) {
		w := newWorld(three()...)
		w.compose()
		w.refuseSound(runs("overlay/o", "key:cccc", 4, "/o"), decision.SignerUnknown)
		wantRefused(t, w.compose(), decision.SignerUnknown, base, admission, overlay)
	})
	t.Run("nor by a policy that is over", func(t *testing.T) {
		w := newWorld(three()...)
		w.compose()
		w.refuseSound(three()[2], decision.PolicyExpired)
		wantRefused(t, w.compose(), decision.PolicyExpired, base, admission, overlay)
	})
	t.Run("of a set that is refused, what it still allows is kept", func(t *testing.T) {
		w := newWorld(three()...)
		w.compose()
		w.refuseSound(three()[2], decision.SignerRevoked)
		w.refuse("a", decision.Tampered)
		w.store(runs("site/new", bob, 1, "/n"))
		for range 2 {
			wantRefused(t, w.compose(), decision.Tampered, base)
		}
		w.refuse("b", decision.Tampered)
		wantRefused(t, w.compose(), decision.Tampered)
	})
	t.Run("and it is required", func(t *testing.T) {
		w := newWorld(three()...)
		w.Policy.Required = []trustpolicy.Member{{Class: "overlay", Name: "o"}}
		w.compose()
		w.refuseSound(three()[2], decision.SignerRevoked)
		wantRefused(t, w.compose(), decision.MemberMissing, base, admission)
	})
}

func TestACompositeThatIsTooLarge(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	w.store(runs("base/b", alice, 4, "/"+strings.Repeat("x", bundle.MaxComposite)))
	wantRefused(t, w.compose(), decision.TooLarge, base, admission, overlay)
	w.store(runs("base/b", alice, 4, "/"+strings.Repeat("x", bundle.MaxComposite-2000)))
	wantAccepted(t, w.compose(), base, admission, overlay)
}

func TestTwoObjectsOfOneName(t *testing.T) {
	w := newWorld(three()...)
	w.stored["again"] = bundle.Candidate{Namespace: "pool", Name: "o", Fragment: runs("site/o", bob, 1, "/x")}
	wantAccepted(t, w.compose(), base, admission)
	delete(w.stored, "again")
	wantAccepted(t, w.compose(), base, admission, overlay)
	w.stored["again"] = bundle.Candidate{Namespace: "pool", Name: "o", Fragment: runs("site/o", bob, 1, "/x")}
	wantRefused(t, w.compose(), decision.Internal, base, admission, overlay)
}

// Whatever is wrong with thousands of objects, what matters is on top of the list.
func TestJunkHidesNothing(t *testing.T) {
	w := newWorld(three()...)
	w.compose()
	for i := range 5000 {
		w.refuse(fmt.Sprintf("a-junk-%04d", i), []decision.Reason{decision.Unsigned, decision.Tampered}[i%2])
	}
	w.refuse("o", decision.Unsigned)
	w.refuse("b", decision.Tampered)
	w.refuse("a", decision.SnapshotUnavailable)
	o := w.compose()
	wantRefused(t, o, decision.Tampered, base, admission, overlay)
	if len(o.Refusals) != bundle.MaxRefusals || o.MoreRefusals != 5003-bundle.MaxRefusals {
		t.Errorf("%d refusals and %d more", len(o.Refusals), o.MoreRefusals)
	}
	for i, want := range []string{"b", "o", "a", "a-junk-0001"} {
		if o.Refusals[i].Name != want || o.Refusals[i].Known != (i < 3) {
			t.Errorf("refusal %d is %+v, want that of %s", i, o.Refusals[i], want)
		}
	}
	w.store(three()...)
	wantAccepted(t, w.compose(), base, admission, overlay)
}

// TestAnyHistory plays histories of chance, and holds what must always be true.
func TestAnyHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 2))
	reasons := []decision.Reason{decision.Unsigned, decision.Tampered, decision.SignerRevoked, decision.SnapshotUnavailable, decision.VersionRollback}
	verdicts := map[bundle.Verdict]int{}
	for history := range 300 {
		w := newWorld()
		if history%3 == 0 {
			w.Policy.Required = []trustpolicy.Member{{Class: "base", Name: "m0"}}
		}
		if history%5 == 0 {
			w.Policy.Tombstones = []trustpolicy.Tombstone{{Class: "base", Name: "m1", Version: 2}, {Class: "overlay", Name: "m1", Version: 9}}
		}
		for range 30 {
			f := runs([]string{"base", "overlay"}[r.IntN(2)]+fmt.Sprint("/m", r.IntN(4)), alice, r.Int64N(5), fmt.Sprint("/", r.IntN(2)))
			switch r.IntN(8) {
			case 0:
				delete(w.stored, f.Name)
			case 1:
				w.refuse(f.Name, reasons[r.IntN(len(reasons))])
			case 2:
				w.refuseSound(f, reasons[2+r.IntN(3)])
			case 3:
				w.restart()
			default:
				w.store(f)
			}
			before := w.Known
			before.Marks = map[ledger.Slot]ledger.SlotMark{}
			for slot, mark := range w.Known.Marks {
				before.Marks[slot] = mark
			}
			o := w.compose()
			verdicts[o.Verdict]++
			holds(t, w, before, o)
			shuffled := w.Set
			shuffled.Known, shuffled.Candidates = before, slices.Clone(w.Candidates)
			slices.Reverse(shuffled.Candidates)
			if diff := cmp.Diff(o, bundle.Compose(shuffled)); diff != "" {
				t.Fatalf("listed in another order: %s", diff)
			}
		}
	}
	if verdicts[bundle.Accepted] < 1000 || verdicts[bundle.Refused] < 1000 {
		t.Errorf("verdicts %v: too one-sided to show anything", verdicts)
	}
}

func holds(t *testing.T, w *world, before bundle.Known, o bundle.Outcome) {
	t.Helper()
	if (o.Verdict == bundle.Refused) != (o.Refusal != nil) || o.Verdict == bundle.Refused && len(o.Marks) > 0 {
		t.Fatalf("half refused: %+v", o)
	}
	for slot, mark := range o.Marks {
		if mark.Version < before.Marks[slot].Version {
			t.Fatalf("%s falls from %d to %d", slot, before.Marks[slot].Version, mark.Version)
		}
	}
	for _, leaf := range w.leaves(o) {
		c := w.stored[leaf.Name]
		kept := before.Last != nil && slices.Contains(before.Last.Leaves, leaf)
		if fresh := c.Fragment != nil && c.Refusal == nil && c.Fragment.Digest == leaf.Digest; !fresh && !(kept && o.Verdict == bundle.Refused) {
			t.Fatalf("%+v takes effect, and nobody vouches for it", leaf)
		}
	}
	if o.Verdict == bundle.Accepted && len(w.Policy.Required) > 0 && !slices.Contains(members(o.Composite), "base/m0") {
		t.Fatal("accepted without its required member")
	}
}

func (w *world) leaves(o bundle.Outcome) []bundle.Leaf {
	if o.Composite == nil {
		return nil
	}
	return o.Composite.Leaves
}
