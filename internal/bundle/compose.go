package bundle

import (
	"encoding/json"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// MaxComposite bounds the spec of a composite as JSON: etcd takes 1.5 MiB in one
// request, with metadata and manifest.
const MaxComposite = 1 << 20

// Set is a bundle at one moment: what is stored, what the policy says, what is remembered.
type Set struct {
	Namespace, Name string
	Policy          trustpolicy.Bundle
	Known           Known
	Candidates      []Candidate
}

// Candidate is a stored object that may be a member.
type Candidate struct {
	Namespace, Name string
	// Fragment is what was signed; nil where the object does not verify.
	Fragment *fragment.Fragment
	// Refusal says why it may not be a member; nil where the policy allows it. An object that cannot
	// be read just now has SnapshotUnavailable, or is the one that was read last, judged anew.
	Refusal *decision.Error
}

// Verdict says what becomes of a set.
type Verdict int

const (
	// Refused is the zero value: the set does not take effect.
	Refused Verdict = iota
	// Accepted is only ever set after every check passed.
	Accepted
	// Dissolved says that the policy buried every member: the composite goes.
	Dissolved
)

// Outcome is the answer about a set.
type Outcome struct {
	Verdict Verdict
	// Composite is what is in effect from now on: a new one where the set is accepted, else what is
	// kept of the last one. Nil means no profile at all: no other profile may stand in for it.
	Composite *Composite
	// Refusal says why the set is refused; nil otherwise.
	Refusal *decision.Error
	// Refusals are the candidates that are no members, the gravest first: at most MaxRefusals, and
	// MoreRefusals that are not listed.
	Refusals     []Refusal
	MoreRefusals int
	// Left are members of the last composite that are not in this one.
	Left []Leaf
	// Marks are to be remembered; none where the set is refused.
	Marks map[ledger.Slot]ledger.SlotMark
	// Alarmed is for Known of the next time; Alarm says that this set was the first to set it.
	Alarmed, Alarm bool
	// Retry says that something could not be read, and the answer may be another one soon.
	Retry bool
}

// Compose decides about a set. The order of its candidates makes no difference.
//
// A refused candidate is left out where nobody knows its name, and refuses the whole set
// where it stands in a known member's place: then the last composite is kept, and no
// mark moves.
func Compose(s Set) Outcome {
	d := divide(s)
	composite, err := d.assemble()
	if err != nil {
		return d.refused(decision.From(err))
	}
	o := d.outcome(composite)
	o.Verdict, o.Marks = Accepted, d.marks()
	if composite == nil {
		o.Verdict = Dissolved
	}
	return o
}

// assemble gives the composite of the members; nil where the policy buried all there were.
func (d *division) assemble() (*Composite, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(d.members) == 0 {
		return nil, nil
	}
	return assembleWithin(d.members, d.set.Policy.Priority)
}

// check holds the set as a whole to the rules.
func (d *division) check() error {
	fault := d.fault()
	// check: Tampered,Unsigned,VersionRollback: a member that was altered, stripped or put back must not just drop out of the profile
	if fault != nil {
		return fault
	}
	for _, m := range d.set.Policy.Required {
		is := func(f *fragment.Fragment) bool { return f.Class == m.Class && f.Name == m.Name }
		// check: MemberMissing: signatures protect what a part says, not that it is there
		if !slices.ContainsFunc(d.members, is) {
			return d.missing(m)
		}
	}
	gone := len(d.known) == 0 && d.knew()
	// check: MemberMissing: a set of nothing, or of junk, is no reason to take a profile away
	if len(d.members) == 0 && !gone {
		return decision.Errorf(decision.MemberMissing, "none of %d candidates may be a member", d.candidates).
			Try("mend what is refused; to take a bundle away, bury its members in bundles.*.tombstones of the trust policy")
	}
	return nil
}

// missing is the refusal of a set that lacks a required member.
func (d *division) missing(m trustpolicy.Member) error {
	what, hint := "it is not there", "apply it again, or sign a trust policy that does not require it"
	for _, r := range d.refusals {
		if r.Name == m.Name {
			what, hint = "what is stored is refused: "+string(r.Error.Reason), "mend what is refused"
		}
	}
	return decision.Errorf(decision.MemberMissing, "the trust policy requires it, and %s", what).At(MemberName(m.Class, m.Name)).Try(hint)
}

// assembleWithin is Assemble, held to MaxComposite.
func assembleWithin(members []*fragment.Fragment, priority []string) (*Composite, error) {
	c, err := Assemble(members, priority)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "the composite: %v", err)
	}
	// check: TooLarge: what cannot be stored must not take the place of what is
	if len(text) > MaxComposite {
		return nil, decision.Errorf(decision.TooLarge, "the composite has %d bytes, more than %d", len(text), MaxComposite).
			Try("split the bundle, or let its fragments say more with fewer entries")
	}
	return c, nil
}

// refused is the answer that keeps what is in effect.
func (d *division) refused(reason *decision.Error) Outcome {
	o := d.outcome(d.kept())
	o.Refusal = reason
	o.Alarmed = d.set.Known.Alarmed || tampered(reason)
	o.Alarm = o.Alarmed && !d.set.Known.Alarmed
	return o
}

// kept is the last composite. Where the policy in force turned against what a member of
// it says, only members that are still allowed, and still say the same, are kept.
func (d *division) kept() *Composite {
	if !d.turned {
		return d.set.Known.Last
	}
	same := slices.DeleteFunc(slices.Clone(d.members), func(f *fragment.Fragment) bool { return !d.last[LeafOf(f)] })
	c, err := assembleWithin(same, d.set.Policy.Priority)
	if err != nil {
		return nil // no member is left
	}
	return c
}

// outcome is what each answer has.
func (d *division) outcome(composite *Composite) Outcome {
	o := Outcome{Composite: composite, Left: d.left(composite), Retry: d.retry}
	o.Refusals, o.MoreRefusals = listed(d.refusals)
	return o
}

// left are members of the last composite that are not in this one.
func (d *division) left(composite *Composite) []Leaf {
	if d.set.Known.Last == nil || d.set.Known.Last == composite {
		return nil
	}
	there := map[string]bool{}
	if composite != nil {
		for _, leaf := range composite.Leaves {
			there[MemberName(leaf.Class, leaf.Name)] = true
		}
	}
	var gone []Leaf
	for _, leaf := range d.set.Known.Last.Leaves {
		if !there[MemberName(leaf.Class, leaf.Name)] {
			gone = append(gone, leaf)
		}
	}
	return gone
}

// marks are those of the members that are not remembered as they are.
func (d *division) marks() map[ledger.Slot]ledger.SlotMark {
	all := map[ledger.Slot]ledger.SlotMark{}
	for _, f := range d.members {
		slot, mark := ledger.SlotOf(d.set.Namespace, f), ledger.SlotMarkOf(f)
		if seen, ok := d.set.Known.Marks[slot]; !ok || seen != mark {
			all[slot] = mark
		}
	}
	return all
}
