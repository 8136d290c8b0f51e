package bundle

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// ErrNoRules says that nothing is left to detect with. Effective returns it; whoever asks
// says it again until it is mended.
var ErrNoRules error = decision.Errorf(decision.MemberMissing, "no rules are admitted: detection is off").
	Try("apply signed Rules of class base; the refusals say why those that are stored do not count")

// baseRules is the class whose rules are for every pod. Those of any other are for the pods of their bundle.
const baseRules = "base"

// RuleSet are the rules of verified Rules objects.
type RuleSet struct {
	scopes map[string]*scope // by bundle; "" is every pod
	// Conflicts are rules of one scope and id that objects write differently; at most MaxConflicts, and
	// MoreConflicts that are not listed. Their Path is "rules", their Key the id; the first one counts.
	Conflicts     []Conflict
	MoreConflicts int
}

// EffectiveRule is a rule, and where it is from.
type EffectiveRule struct {
	Rule fragment.Rule
	From Leaf
	// Bundle is the only one the rule is for; empty where it is for every pod.
	Bundle string
}

// Effective puts the rules of admitted objects together, in whatever order they come. The
// error is ErrNoRules, or carries KindMismatch.
func Effective(objects []*fragment.Fragment) (*RuleSet, error) {
	for _, f := range objects {
		// check: KindMismatch: content of another kind has no rules, and would pass for an object that has
		if f.Kind != fragment.KindRules || f.Rules == nil {
			return nil, decision.Errorf(decision.KindMismatch, "a %.60q has no rules", f.Kind).At(f.Name)
		}
	}
	set := &RuleSet{scopes: map[string]*scope{}}
	for _, f := range orderOf(nil).sort(objects) {
		set.add(f)
	}
	// check: MemberMissing: without a rule nothing is ever detected, and silence would look like peace
	if len(set.scopes) == 0 {
		return nil, ErrNoRules
	}
	set.listConflicts()
	return set, nil
}

func (s *RuleSet) add(f ranked) {
	bundle := f.Bundle
	if f.Class == baseRules {
		bundle = ""
	} else if bundle == "" {
		return // there is no pod that it could be for
	}
	for _, rule := range f.Rules.Rules {
		if s.scopes[bundle] == nil {
			s.scopes[bundle] = &scope{place: map[string]int{}, rivals: map[string][]ranked{}}
		}
		s.scopes[bundle].add(EffectiveRule{Rule: rule, From: LeafOf(f.Fragment), Bundle: bundle}, f)
	}
}

// For gives the rules of a pod that belongs to the bundle, or to none (""): the base rules
// in their order, each in its place replaced by the bundle's own of the same id, and then
// what else the bundle has.
func (s *RuleSet) For(bundle string) []EffectiveRule {
	base, own := s.scopes[""], s.scopes[bundle]
	if bundle == "" || own == nil {
		return slices.Clone(base.list())
	}
	var all []EffectiveRule
	for _, rule := range base.list() {
		if i, replaced := own.place[rule.Rule.ID]; replaced {
			rule = own.rules[i]
		}
		all = append(all, rule)
	}
	for _, rule := range own.rules {
		if !base.has(rule.Rule.ID) {
			all = append(all, rule)
		}
	}
	return all
}

// Bundles are those that have rules of their own.
func (s *RuleSet) Bundles() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.scopes)), func(bundle string) bool { return bundle == "" })
}

// scope are the rules of one bundle, or of every pod. A nil one has none.
type scope struct {
	rules  []EffectiveRule
	place  map[string]int      // of an id among the rules
	rivals map[string][]ranked // objects that write a rule of that id differently than the first
}

// add takes a rule, unless its id is there already: the first one counts.
func (s *scope) add(rule EffectiveRule, from ranked) {
	i, there := s.place[rule.Rule.ID]
	if !there {
		s.place[rule.Rule.ID] = len(s.rules)
		s.rules = append(s.rules, rule)
		return
	}
	if !reflect.DeepEqual(s.rules[i].Rule, rule.Rule) {
		s.rivals[rule.Rule.ID] = append(s.rivals[rule.Rule.ID], from)
	}
}

func (s *scope) list() []EffectiveRule {
	if s == nil {
		return nil
	}
	return s.rules
}

func (s *scope) has(id string) bool {
	if s == nil {
		return false
	}
	_, there := s.place[id]
	return there
}

func (s *RuleSet) listConflicts() {
	for _, bundle := range slices.Sorted(maps.Keys(s.scopes)) {
		own := s.scopes[bundle]
		for _, id := range slices.Sorted(maps.Keys(own.rivals)) {
			if len(s.Conflicts) == MaxConflicts {
				s.MoreConflicts++
				continue
			}
			s.Conflicts = append(s.Conflicts, own.conflict(id))
		}
	}
}

func (s *scope) conflict(id string) Conflict {
	first := s.rules[s.place[id]].From
	names := []string{MemberName(first.Class, first.Name)}
	for _, f := range s.rivals[id] {
		names = append(names, MemberName(f.Class, f.Name))
	}
	c := Conflict{Class: first.Class, Path: "rules", Key: decision.OneLine(id, maxKey), Winner: names[0]}
	c.Members, c.More = named(names)
	return c
}
