package main

import (
	"fmt"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// describeFragment shows what was signed of a fragment and by which key, and where the stored object
// differs. What nobody signed has no facts: its labels are anybody's word.
func describeFragment(f finding, raw []byte) finding {
	o, err := fragment.Parse(raw)
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	signed, err := fragment.Verify(o)
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	f.Facts = append(f.Facts, fragmentFacts(signed)...)
	_, embedded := o.Annotations[fragment.AnnotationContent]
	f.Facts = append(f.Facts, fact{"embedded content", yesNo(embedded)})
	if len(signed.Diverges) > 0 {
		f.Facts = append(f.Facts, fact{"stored spec differs in", strings.Join(signed.Diverges, ", ")})
	}
	return f
}

func fragmentFacts(f *fragment.Fragment) []fact {
	all := []fact{
		{"class", orNone(f.Class)},
		{"bundle", orNone(f.Bundle)},
		{"version", fmt.Sprint(f.Version)},
		{"signer", f.Signer},
		{"fragment digest", f.Digest},
		{"fragment bytes", f.Bytes},
	}
	switch {
	case f.Profile != nil:
		all = append(all, fact{"sets", listOrNone(f.Profile.Set())})
	case f.Rules != nil:
		for _, rule := range f.Rules.Rules {
			all = append(all, fact{"rule", ruleName(rule)})
		}
	}
	return all
}

func ruleName(rule fragment.Rule) string {
	if rule.Enabled {
		return rule.ID
	}
	return rule.ID + ", switched off"
}
