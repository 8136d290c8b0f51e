package bundle

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Known is what is remembered of one bundle in one namespace. Its zero value knows
// nothing, as offline.
type Known struct {
	// Last is the last composite that was accepted; nil where there is none, or it is lost.
	Last *Composite
	// Marks are those of the bundle's slots; nil where nobody keeps any, and versions are held against
	// nothing. An empty map is a ledger that has not seen the bundle yet.
	Marks map[ledger.Slot]ledger.SlotMark
	// Alarmed says that a member was found tampered with since the last set that was accepted.
	Alarmed bool
	// Reset reports whether the policy lets exactly this version in, and did not yet; nil where it never does.
	Reset func(ledger.Slot, ledger.SlotMark) bool
}

// members are the slots whose absence, or refusal, is no small matter: those of the last
// composite or, where that is lost, all that were ever seen. What the policy buried is
// not among them.
func (s Set) members() []trustpolicy.Member {
	if s.Known.Last == nil {
		return s.remembered()
	}
	var all []trustpolicy.Member
	for _, leaf := range s.Known.Last.Leaves {
		if !s.Policy.Buried(leaf.Class, leaf.Name, leaf.Version) {
			all = append(all, trustpolicy.Member{Class: leaf.Class, Name: leaf.Name})
		}
	}
	return all
}

// remembered are the slots that have a mark, but for what the policy buried.
func (s Set) remembered() []trustpolicy.Member {
	var all []trustpolicy.Member
	for slot, mark := range s.Known.Marks {
		profile := !strings.Contains(slot.Class, "/") // other kinds have theirs before the class
		if profile && slot.Namespace == s.Namespace && slot.Bundle == s.Name && !s.Policy.Buried(slot.Class, slot.Name, mark.Version) {
			all = append(all, trustpolicy.Member{Class: slot.Class, Name: slot.Name})
		}
	}
	return all
}

// follows judges the version of a fragment by what is remembered of its slot.
func (s Set) follows(f *fragment.Fragment) error {
	// check: VersionRollback: what the roots took out must not come back with a signature from before
	if s.Policy.Buried(f.Class, f.Name, f.Version) {
		return decision.Errorf(decision.VersionRollback, "version %d was taken out by the trust policy", f.Version).
			Try("sign a higher version than its tombstone's")
	}
	slot, mark := ledger.SlotOf(s.Namespace, f), ledger.SlotMarkOf(f)
	if s.Known.Reset != nil && s.Known.Reset(slot, mark) {
		return nil
	}
	if seen, ok := s.Known.Marks[slot]; ok {
		return seen.Next(mark)
	}
	if s.Known.Marks == nil {
		return nil // nobody keeps marks, as offline
	}
	return ledger.FirstSlot(mark)
}

func names(of []trustpolicy.Member) map[string]bool {
	all := map[string]bool{}
	for _, m := range of {
		all[m.Name] = true
	}
	return all
}
