package bundle_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// rules are a verified Rules object; each rule is id=description.
func rules(class, of, name, signer string, all ...fragment.Rule) *fragment.Fragment {
	return &fragment.Fragment{
		Kind: fragment.KindRules, Name: name, Bundle: of, Class: class, Signer: signer, Digest: hexOf(fmt.Sprint(class, of, name, all)),
		Rules: &fragment.RulesSpec{Rules: all},
	}
}

func rule(id, text string) fragment.Rule {
	return fragment.Rule{Enabled: true, ID: id, Description: text}
}

func inForce(t *testing.T, set *bundle.RuleSet, of string) []string {
	t.Helper()
	var all []string
	for _, r := range set.For(of) {
		all = append(all, r.Rule.ID+" "+r.Rule.Description+" from "+r.From.Name)
	}
	return all
}

func TestEffectiveRules(t *testing.T) {
	objects := []*fragment.Fragment{
		rules("overlay", "redis", "ov", bob, rule("R9", "new"), rule("R2", "redis"), rule("R2", "again")),
		rules("overlay", "nginx", "ng", bob, rule("R1", "nginx")),
		rules("base", "", "b2", bob, rule("R1", "other"), rule("R4", "four")),
		rules("base", "nginx", "b1", alice, rule("R1", "one"), rule("R2", "two"), rule("R3", "three")),
		rules("overlay", "", "nobodys", bob, rule("R1", "stray")),
	}
	for i := range objects { // in any order
		objects = append(objects[1:], objects[0])
		set, err := bundle.Effective(objects)
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range map[string][]string{
			"":      {"R1 one from b1", "R2 two from b1", "R3 three from b1", "R4 four from b2"},
			"other": {"R1 one from b1", "R2 two from b1", "R3 three from b1", "R4 four from b2"},
			"redis": {"R1 one from b1", "R2 redis from ov", "R3 three from b1", "R4 four from b2", "R9 new from ov"},
			"nginx": {"R1 nginx from ng", "R2 two from b1", "R3 three from b1", "R4 four from b2"},
		} {
			if diff := cmp.Diff(want, inForce(t, set, of)); diff != "" {
				t.Errorf("rotated by %d, bundle %q: %s", i, of, diff)
			}
		}
		if diff := cmp.Diff([]string{"nginx", "redis"}, set.Bundles()); diff != "" {
			t.Error(diff)
		}
		want := []bundle.Conflict{
			{Class: "base", Path: "rules", Key: "R1", Members: []string{"base/b1", "base/b2"}, Winner: "base/b1"},
			{Class: "overlay", Path: "rules", Key: "R2", Members: []string{"overlay/ov", "overlay/ov"}, Winner: "overlay/ov"},
		}
		if diff := cmp.Diff(want, set.Conflicts); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhereARuleIsFor(t *testing.T) {
	set, err := bundle.Effective([]*fragment.Fragment{rules("base", "", "b", alice, rule("R1", "one")), rules("overlay", "redis", "o", bob, rule("R1", "two"))})
	if err != nil {
		t.Fatal(err)
	}
	if got := set.For("redis")[0].Bundle + set.For("")[0].Bundle; got != "redis" {
		t.Errorf("bundles %q", got)
	}
	overlayOnly, err := bundle.Effective([]*fragment.Fragment{rules("overlay", "redis", "o", bob, rule("R1", "two"))})
	if err != nil || len(overlayOnly.For("")) != 0 || len(overlayOnly.For("redis")) != 1 {
		t.Errorf("%+v, %v", overlayOnly, err)
	}
}

// M7, C5, C6: what has no rules in it is nothing; rules that are switched off are rules.
func TestNoRules(t *testing.T) {
	off := rule("R1", "off")
	off.Enabled = false
	for name, tt := range map[string]struct {
		objects []*fragment.Fragment
		want    error
	}{
		"no object":                  {nil, bundle.ErrNoRules},
		"an object without rules":    {[]*fragment.Fragment{rules("base", "", "b", alice)}, bundle.ErrNoRules},
		"an overlay of no bundle":    {[]*fragment.Fragment{rules("overlay", "", "o", alice, rule("R1", "one"))}, bundle.ErrNoRules},
		"one that is switched off":   {[]*fragment.Fragment{rules("base", "", "b", alice, off)}, nil},
		"one beside one without any": {[]*fragment.Fragment{rules("base", "", "a", alice), rules("base", "", "b", alice, off)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := bundle.Effective(tt.objects)
			if !errors.Is(err, tt.want) || (set == nil) != (err != nil) {
				t.Errorf("%+v, %v", set, err)
			}
		})
	}
	wantReason(t, bundle.ErrNoRules, decision.MemberMissing)
	for name, change := range map[string]func(*fragment.Fragment){
		"a profile": func(f *fragment.Fragment) { f.Kind = fragment.KindContainerProfile },
		"no spec":   func(f *fragment.Fragment) { f.Rules = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := rules("base", "", "b", alice, rule("R1", "one"))
			change(f)
			_, err := bundle.Effective([]*fragment.Fragment{f})
			wantReason(t, err, decision.KindMismatch)
		})
	}
}

func TestConflictsOfRulesAreBounded(t *testing.T) {
	var one, two []fragment.Rule
	for i := range 130 {
		one, two = append(one, rule(fmt.Sprint("R", i), "one")), append(two, rule(fmt.Sprint("R", i), "two"))
	}
	set, err := bundle.Effective([]*fragment.Fragment{rules("base", "", "a", alice, one...), rules("base", "", "b", bob, two...)})
	if err != nil || len(set.Conflicts) != bundle.MaxConflicts || set.MoreConflicts != 30 {
		t.Errorf("%d and %d more, %v", len(set.Conflicts), set.MoreConflicts, err)
	}
	same, err := bundle.Effective([]*fragment.Fragment{rules("base", "", "a", alice, one...), rules("base", "", "b", bob, one...)})
	if err != nil || same.Conflicts != nil {
		t.Errorf("%v, %v", same.Conflicts, err)
	}
}

// The published rules: a base for every pod, and one rule of a bundle in its place.
func TestPublishedRules(t *testing.T) {
	set, err := bundle.Effective([]*fragment.Fragment{
		verified(t, "node-agent/rules/namespace-override-signed.yaml"), verified(t, "node-agent/rules/cluster-baseline-signed.yaml"),
	})
	if err != nil {
		t.Fatal(err)
	}
	all, own := set.For(""), set.For("bundle37")
	if len(all) != 29 || len(own) != 29 {
		t.Fatalf("%d rules, %d of bundle37", len(all), len(own))
	}
	for i := range all {
		if all[i].Rule.ID != own[i].Rule.ID || (own[i].Bundle != "") != (own[i].Rule.ID == "R0001") {
			t.Errorf("place %d: %s of %q, and %s of %q", i, all[i].Rule.ID, all[i].Bundle, own[i].Rule.ID, own[i].Bundle)
		}
	}
}
