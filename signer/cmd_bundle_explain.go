package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
)

func (c *cli) bundleExplainCommand() *cobra.Command {
	var o bundleOptions
	var format string
	cmd := &cobra.Command{
		Use:   "explain PATH...",
		Short: "Say what is in a bundle, what is not and why, and which rules are in effect",
		Long: `explain says of each bundle whether the cluster would take it, its Merkle root, each member with version, signer,
digest and what it sets, each fragment that is no member and why, and what members contradict each other in. Then it
lists the detection rules: those of every pod, and for each bundle those that take the place of one, or are added.

What only the cluster knows, its versions and its last profile, is not asked here: what is new there is new here.

Exit status: 0 every bundle is taken whole, 1 any is refused, or any fragment or Rules object with a signature is,
2 wrong usage, 3 nothing to explain, or it could not be decided.`,
		Example: `  hostwarrant bundle explain fragments/ rules/ --policy trust-policy.yaml --root root.pub
  hostwarrant bundle explain fragments/ --bundle redis --policy trust-policy.signed.json --root root.pub -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			if format != "text" && format != "json" {
				return usage("-o takes text or json, not %q", format)
			}
			return c.bundleExplain(paths, o, format)
		},
	}
	o.register(cmd)
	cmd.Flags().Lookup("bundle").Usage = "explain this bundle alone"
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

// explained is what is said of bundles and rules (docs/cli.md).
type explained struct {
	Bundles []explainedBundle `json:"bundles"`
	Rules   *explainedRules   `json:"rules,omitempty"`
	Loose   []string          `json:"ofNoBundle,omitempty"`
}

type explainedBundle struct {
	bundleID
	Accepted  bool              `json:"accepted"`
	Refusal   *explainedRefusal `json:"refusal,omitempty"`
	Root      string            `json:"root,omitempty"`
	Members   []explainedMember `json:"members"`
	Out       []explainedOut    `json:"out"`
	MoreOut   int               `json:"moreOut,omitempty"`
	Conflicts []bundle.Conflict `json:"conflicts"`
	More      int               `json:"moreConflicts,omitempty"`
	Diverging []string          `json:"diverging,omitempty"`
}

type explainedMember struct {
	bundle.Leaf
	Sets []string `json:"sets"`
}

type explainedRefusal struct {
	Reason string `json:"reason"`
	Where  string `json:"where,omitempty"`
	What   string `json:"what"`
	Hint   string `json:"hint,omitempty"`
}

type explainedOut struct {
	Name string `json:"name"`
	explainedRefusal
}

type explainedRules struct {
	// Base are the rules of every pod; Bundles what is another rule in the pods of a bundle.
	Base      []explainedRule            `json:"base"`
	Bundles   map[string][]explainedRule `json:"bundles,omitempty"`
	Out       []explainedOut             `json:"out"`
	Conflicts []bundle.Conflict          `json:"conflicts"`
	Refusal   *explainedRefusal          `json:"refusal,omitempty"`
}

type explainedRule struct {
	ID      string      `json:"id"`
	Enabled bool        `json:"enabled"`
	From    bundle.Leaf `json:"from"`
	// Replaces says that it takes the place of a rule of every pod.
	Replaces bool `json:"replaces,omitempty"`
}

func (c *cli) bundleExplain(paths []string, o bundleOptions, format string) error {
	snapshot, err := c.bundleSnapshot(o)
	if err != nil {
		return err
	}
	s, err := c.readBundles(snapshot, paths, o)
	if err != nil {
		return err
	}
	ids := s.chosen(o.bundle)
	if o.bundle != "" && len(ids) == 0 {
		return stuck(askBundles, "there is no fragment of the bundle %.80q", o.bundle)
	}
	all := explained{Bundles: []explainedBundle{}, Loose: s.loose}
	if len(snapshot.Policy.RuleClasses) > 0 {
		all.Rules = s.explainRules(ids)
	} else if len(s.rulesOut) > 0 {
		c.say("warning", "the trust policy has no ruleClasses: nobody vouches for Rules, and they are not judged")
	}
	whole := all.Rules == nil || all.Rules.whole()
	for _, id := range ids {
		b := s.explainBundle(id)
		whole = whole && b.whole()
		all.Bundles = append(all.Bundles, b)
	}
	if err := c.printExplained(all, format); err != nil {
		return err
	}
	if !whole {
		return &failure{code: exitRefused}
	}
	return nil
}

func (c *cli) printExplained(all explained, format string) error {
	if format == "json" {
		return c.printJSON(all)
	}
	var b bytes.Buffer
	for _, one := range all.Bundles {
		one.write(&b)
	}
	if all.Rules != nil {
		all.Rules.write(&b)
	}
	for _, name := range all.Loose {
		fmt.Fprintf(&b, "of no bundle: %s\n", name)
	}
	return c.print(b.Bytes())
}

func (s *bundleSet) explainBundle(id bundleID) explainedBundle {
	o := s.compose(id)
	e := explainedBundle{
		bundleID: id, Accepted: o.Verdict == bundle.Accepted, Members: []explainedMember{}, Out: outs(o.Refusals), MoreOut: o.MoreRefusals,
		Conflicts: []bundle.Conflict{}, Diverging: s.diverging[id],
	}
	if o.Refusal != nil {
		e.Refusal = refusalOf(o.Refusal)
	}
	if o.Composite == nil {
		return e
	}
	e.Root, e.Conflicts, e.More = o.Composite.Root, append(e.Conflicts, o.Composite.Conflicts...), o.Composite.MoreConflicts
	sets := map[bundle.Leaf][]string{}
	for _, candidate := range s.candidates[id] {
		if f := candidate.Fragment; f != nil && f.Profile != nil {
			sets[bundle.Leaf{Class: f.Class, Signer: f.Signer, Name: f.Name, Digest: f.Digest, Version: f.Version}] = f.Profile.Set()
		}
	}
	for _, leaf := range o.Composite.Leaves {
		e.Members = append(e.Members, explainedMember{leaf, append([]string{}, sets[leaf]...)})
	}
	return e
}

// explainRules is nil where no Rules were given.
func (s *bundleSet) explainRules(ids []bundleID) *explainedRules {
	if len(s.rules)+len(s.rulesOut) == 0 {
		return nil
	}
	e := &explainedRules{Base: []explainedRule{}, Bundles: map[string][]explainedRule{}, Out: outs(s.rulesOut), Conflicts: []bundle.Conflict{}}
	set, err := bundle.Effective(s.rules)
	if err != nil {
		e.Refusal = refusalOf(decision.From(err))
		return e
	}
	base := map[string]bool{}
	for _, rule := range set.For("") {
		base[rule.Rule.ID] = true
		e.Base = append(e.Base, explainRule(rule))
	}
	for _, name := range set.Bundles() {
		if !wanted(ids, name) {
			continue
		}
		for _, rule := range set.For(name) {
			if rule.Bundle == name {
				own := explainRule(rule)
				own.Replaces = base[own.ID]
				e.Bundles[name] = append(e.Bundles[name], own)
			}
		}
	}
	e.Conflicts = append(e.Conflicts, set.Conflicts...)
	return e
}

// wanted tells whether the rules of a bundle are asked for: of all where no bundle of that set is named.
func wanted(ids []bundleID, name string) bool {
	for _, id := range ids {
		if id.Name == name {
			return true
		}
	}
	return len(ids) == 0
}

func explainRule(r bundle.EffectiveRule) explainedRule {
	return explainedRule{ID: r.Rule.ID, Enabled: r.Rule.Enabled, From: r.From}
}

func (e explainedBundle) whole() bool {
	return e.Refusal == nil && onlyUnsigned(e.Out) && e.MoreOut == 0
}

func (e *explainedRules) whole() bool { return e.Refusal == nil && onlyUnsigned(e.Out) }

func (e explainedBundle) write(b *bytes.Buffer) {
	word := "taken"
	if e.Refusal != nil {
		word = "refused: " + e.Refusal.text()
	} else if !e.Accepted {
		word = "taken out by the trust policy"
	}
	fmt.Fprintf(b, "bundle %s: %s\n", e.bundleID, word)
	if e.Root != "" {
		fmt.Fprintf(b, "  root %s\n", e.Root)
	}
	for _, m := range e.Members {
		fmt.Fprintf(b, "  in   %s version %d, signer %s, digest %s, sets %s\n", shown(bundle.MemberName(m.Class, m.Name)), m.Version, m.Signer, m.Digest, listOrNone(m.Sets))
	}
	writeOuts(b, e.Out, e.MoreOut)
	for _, conflict := range e.Conflicts {
		fmt.Fprintf(b, "  conflict: %s\n", conflictText(conflict))
	}
	for _, text := range e.Diverging {
		fmt.Fprintf(b, "  differs: %s\n", shown(text))
	}
}

func (e *explainedRules) write(b *bytes.Buffer) {
	if e.Refusal != nil {
		fmt.Fprintf(b, "rules: %s\n", e.Refusal.text())
	} else {
		fmt.Fprintf(b, "rules of every pod: %d\n", len(e.Base))
	}
	for _, rule := range e.Base {
		rule.write(b, "")
	}
	writeOuts(b, e.Out, 0)
	for _, conflict := range e.Conflicts {
		fmt.Fprintf(b, "  conflict: %s\n", conflictText(conflict))
	}
	for _, name := range sortedKeys(e.Bundles) {
		fmt.Fprintf(b, "rules of the pods of bundle %s, beside those:\n", shown(name))
		for _, rule := range e.Bundles[name] {
			word := ", added"
			if rule.Replaces {
				word = ", takes the place of the one above"
			}
			rule.write(b, word)
		}
	}
}

func (r explainedRule) write(b *bytes.Buffer, more string) {
	off := ""
	if !r.Enabled {
		off = ", switched off"
	}
	fmt.Fprintf(b, "  %s from %s version %d%s%s\n", shown(r.ID), shown(bundle.MemberName(r.From.Class, r.From.Name)), r.From.Version, off, more)
}
