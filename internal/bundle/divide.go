package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// MaxRefusals bounds a report.
const MaxRefusals = 100

// Refusal is a candidate that is no member.
type Refusal struct {
	Name string
	// Known says that it stands in a member's place, and not just beside the bundle.
	Known bool
	Error *decision.Error
}

// compare puts the gravest first; of two objects of one name, which nobody stores, what is said of them decides.
func (r Refusal) compare(other Refusal) int {
	if c := cmp.Or(gravity(r)-gravity(other), strings.Compare(r.Name, other.Name)); c != 0 {
		return c
	}
	return strings.Compare(r.Error.Error(), other.Error.Error())
}

// division is a set with its candidates told apart.
type division struct {
	set        Set
	last       map[Leaf]bool   // of the last composite
	known      map[string]bool // names of members
	remembered map[string]bool // names of slots that have a mark
	candidates int
	members    []*fragment.Fragment
	refusals   []Refusal // the gravest first
	turned     bool      // the policy turned against a leaf of the last composite
	retry      bool
}

func divide(s Set) *division {
	d := &division{set: s, last: map[Leaf]bool{}, known: names(s.members()), remembered: names(s.remembered())}
	if s.Known.Last != nil {
		for _, leaf := range s.Known.Last.Leaves {
			d.last[leaf] = true
		}
	}
	objects := map[string]int{}
	candidates := d.concerned()
	for _, c := range candidates {
		objects[c.Name]++
	}
	for _, c := range candidates {
		d.candidates++
		if err := d.judge(c, objects[c.Name]); err != nil {
			d.refuse(c, decision.From(err))
			continue
		}
		d.members = append(d.members, c.Fragment)
	}
	slices.SortFunc(d.refusals, Refusal.compare)
	return d
}

// concerned are the candidates without those that were signed for another bundle, and
// have no name that matters here: labels brought them here, and they are anybody's word.
func (d *division) concerned() []Candidate {
	var all []Candidate
	for _, c := range d.set.Candidates {
		foreign := c.Fragment != nil && c.Fragment.Bundle != d.set.Name && !d.known[c.Name] && c.Name != d.set.Name
		if c.Namespace == d.set.Namespace && !foreign {
			all = append(all, c)
		}
	}
	return all
}

// judge says why a candidate may not be a member. Objects is how many have its name.
func (d *division) judge(c Candidate, objects int) error {
	// check: CompositeForeign: the composite bears this name, and would be written over its own part
	if c.Name == d.set.Name {
		return decision.Errorf(decision.CompositeForeign, "the composite has the bundle's name, and takes the place of this profile").
			Try("give the profile another name, or delete it")
	}
	if c.Refusal != nil {
		return c.Refusal
	}
	// check: Internal: an object that nobody judged is not one that passed
	if c.Fragment == nil {
		return decision.Errorf(decision.Internal, "nobody judged it")
	}
	// check: Internal: of two objects with one name nobody could say which is the member
	if objects > 1 {
		return decision.Errorf(decision.Internal, "%d objects have this name", objects)
	}
	if err := fits(c.Fragment, d.set.Name); err != nil {
		return err
	}
	return d.set.follows(c.Fragment)
}

func (d *division) refuse(c Candidate, err *decision.Error) {
	d.retry = d.retry || err.Reason == decision.SnapshotUnavailable
	r := Refusal{Name: c.Name, Error: err, Known: d.known[c.Name] || d.remembered[c.Name] && aboutVersion(err.Reason)}
	if c.Fragment != nil && d.last[LeafOf(c.Fragment)] && byPolicy(err.Reason) {
		d.turned, r.Known = true, false
	}
	d.refusals = append(d.refusals, r)
}

// fault is the gravest refusal in a member's place; nil where there is none.
func (d *division) fault() error {
	if len(d.refusals) == 0 || !d.refusals[0].Known {
		return nil
	}
	return d.refusals[0].Error.At(d.refusals[0].Name)
}

// knew reports whether the bundle ever had a member.
func (d *division) knew() bool { return d.set.Known.Last != nil || len(d.set.Known.Marks) > 0 }

// tampered reports whether a refusal says that somebody altered what was signed.
func tampered(err *decision.Error) bool {
	return err.Reason == decision.Tampered || err.Reason == decision.SignatureInvalid
}

// byPolicy reports whether a refusal is the policy's, about content that is sound.
func byPolicy(r decision.Reason) bool {
	switch r {
	case decision.SignerUnknown, decision.SignerRevoked, decision.SignerScope, decision.ClassUnknown, decision.PathRefused, decision.ValueRefused:
		return true
	default:
		return false
	}
}

func aboutVersion(r decision.Reason) bool {
	return r == decision.VersionRollback || r == decision.VersionEquivocated
}

// gravity sorts refusals: first what stands in a member's place, and of that first what
// was tampered with; junk that nobody signed last, so that it hides nothing.
func gravity(r Refusal) int {
	switch {
	case r.Known && tampered(r.Error):
		return 0
	case r.Known && r.Error.Reason != decision.SnapshotUnavailable:
		return 1
	case r.Known || r.Error.Reason == decision.CompositeForeign:
		return 2
	case r.Error.Reason != decision.Unsigned:
		return 3
	default:
		return 4
	}
}

func listed(all []Refusal) ([]Refusal, int) {
	n := min(len(all), MaxRefusals)
	return all[:n:n], len(all) - n
}
