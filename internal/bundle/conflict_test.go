package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

func TestConflicts(t *testing.T) {
	type spec = fragment.ProfileSpec
	image := func(id string) spec { return spec{ImageID: id} }
	peer := func(dns string) spec { return spec{Egress: []fragment.Neighbor{{Identifier: "db", DNS: dns}}} }
	for name, tt := range map[string]struct {
		members  []*fragment.Fragment
		priority []string
		want     []bundle.Conflict
	}{
		"one class, one value, two opinions": {
			[]*fragment.Fragment{part("base/a", alice, 1, image("one")), part("base/b", bob, 1, image("two"))},
			nil,
			[]bundle.Conflict{{Class: "base", Path: "imageID", Members: []string{"base/a", "base/b"}, Winner: "base/b"}},
		},
		"the policy chooses": {
			[]*fragment.Fragment{part("base/a", alice, 1, image("one")), part("base/b", bob, 1, image("two"))},
			[]string{"base/a"},
			[]bundle.Conflict{{Class: "base", Path: "imageID", Members: []string{"base/b", "base/a"}, Winner: "base/a", ByPolicy: true}},
		},
		"one opinion":               {[]*fragment.Fragment{part("base/a", alice, 1, image("one")), part("base/b", bob, 1, image("one"))}, nil, nil},
		"one of them says nothing":  {[]*fragment.Fragment{part("base/a", alice, 1, image("one")), part("base/b", bob, 1, image(""))}, nil, nil},
		"a stronger class overlays": {[]*fragment.Fragment{part("base/a", alice, 1, image("one")), part("overlay/b", bob, 1, image("two"))}, nil, nil},
		"classes without a rank of their own are equal": {
			[]*fragment.Fragment{part("site/a", alice, 1, image("one")), part("team/b", bob, 1, image("two"))},
			nil,
			[]bundle.Conflict{{Class: "team", Path: "imageID", Members: []string{"site/a", "team/b"}, Winner: "team/b"}},
		},
		"until the policy ranks one": {[]*fragment.Fragment{part("site/a", alice, 1, image("one")), part("team/b", bob, 1, image("two"))}, []string{"site"}, nil},
		"who changes his mind in the end agrees": {
			[]*fragment.Fragment{
				part("base/a", alice, 1, spec{Egress: []fragment.Neighbor{{Identifier: "db", DNS: "x"}, {Identifier: "db", DNS: "y"}}}), part("base/b", bob, 1, peer("y")),
			}, nil, nil,
		},
		"each part in which they may differ": {
			[]*fragment.Fragment{
				part("base/a", alice, 1, spec{
					ImageID: "one", ImageTag: "one", SeccompProfile: fragment.Seccomp{Name: "one"}, RulePolicies: map[string]fragment.RulePolicy{"R1": {ContainerAllowed: true}, "R2": {}},
					LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{"app": "one", "tier": "x"}},
					Ingress:       []fragment.Neighbor{{Identifier: "in", DNS: "one"}, {Identifier: "same"}}, Egress: []fragment.Neighbor{{Identifier: "out", DNS: "one"}},
				}),
				part("base/b", bob, 1, spec{
					ImageID: "two", ImageTag: "two", SeccompProfile: fragment.Seccomp{Name: "two"}, RulePolicies: map[string]fragment.RulePolicy{"R1": {}, "R2": {}},
					LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{"app": "two", "tier": "x"}},
					Ingress:       []fragment.Neighbor{{Identifier: "in", DNS: "two"}, {Identifier: "same"}}, Egress: []fragment.Neighbor{{Identifier: "out", DNS: "two"}},
				}),
			},
			nil, conflictsOn("seccompProfile", "imageID", "imageTag", "rulePolicies R1", "labelSelector app", "ingress in", "egress out"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := assembled(t, tt.members, tt.priority...)
			if diff := cmp.Diff(tt.want, c.Conflicts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func conflictsOn(parts ...string) []bundle.Conflict {
	var all []bundle.Conflict
	for _, part := range parts {
		path, key, _ := strings.Cut(part, " ")
		all = append(all, bundle.Conflict{Class: "base", Path: path, Key: key, Members: []string{"base/a", "base/b"}, Winner: "base/b"})
	}
	return all
}

// What is reported of a quarrel is bounded, whatever the quarrel is like.
func TestReportsOfConflictsAreBounded(t *testing.T) {
	var all []*fragment.Fragment
	for i := range 30 {
		var peers []fragment.Neighbor
		for j := range 150 {
			peers = append(peers, fragment.Neighbor{Identifier: fmt.Sprintf("%03d\x1b", j) + strings.Repeat("x", 1000), DNS: fmt.Sprint(i)})
		}
		all = append(all, part(fmt.Sprintf("base/%02d", i), alice, 1, fragment.ProfileSpec{Egress: peers}))
	}
	c := assembled(t, all)
	if len(c.Conflicts) != bundle.MaxConflicts || c.MoreConflicts != 50 {
		t.Errorf("%d conflicts are listed, and %d more", len(c.Conflicts), c.MoreConflicts)
	}
	first := c.Conflicts[0]
	if len(first.Members) != bundle.MaxNamed || first.More != 14 {
		t.Errorf("%d members are named, and %d more", len(first.Members), first.More)
	}
	if last := members(c)[29]; first.Winner != last {
		t.Errorf("the winner is %s, not the last, %s", first.Winner, last)
	}
	if len(first.Key) > 256 || !strings.HasPrefix(first.Key, `000\x1bxxx`) {
		t.Errorf("the key is %q", first.Key)
	}
}
