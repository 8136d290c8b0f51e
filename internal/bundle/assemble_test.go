package bundle_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// The roots that others computed over published fragments.
func TestPublishedRoots(t *testing.T) {
	t.Run("bundle37", func(t *testing.T) {
		c := assembled(t, bundle37(t))
		if want := "acc1c4b5dede580900766f30b5ad1b3db4f8f3530da0f9799dc600f201ced57b"; c.Root != want {
			t.Errorf("root %s, want %s", c.Root, want)
		}
		if diff := cmp.Diff([]string{"base/bundle37-base", "admission/bundle37-admission", "overlay/bundle37-overlay"}, members(c)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("redis", func(t *testing.T) {
		const vendor, operator = "key:1b962159c04a8b6dd5825b971d8417a144a1358d9e2f8c14368d14e1ebc67fbd", "key:2c6bd5e1e52cd5721c986bde87e84c382984d8d3263ddde7fc89d2e9c90c3fb3"
		c := assembled(t, []*fragment.Fragment{
			unsigned(t, "frag-overlay-ops", operator), unsigned(t, "frag-admission-redis-client", operator), unsigned(t, "frag-base-redis", vendor),
		})
		if want := "2a91e677242959b99a07e95b56e01a8797a3697e4154c055e0d328e12e4860d3"; c.Root != want {
			t.Errorf("root %s, want %s", c.Root, want)
		}
	})
}

// unsigned is a published fragment without its signature, as if signer had signed it.
func unsigned(t *testing.T, name, signer string) *fragment.Fragment {
	t.Helper()
	o := published(t, "bob/fragments-unsigned/"+name+".yaml")
	content, err := fragment.Content(o)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fragment.Digest(content)
	if err != nil {
		t.Fatal(err)
	}
	f := &fragment.Fragment{
		Kind: o.Kind, Name: o.Name, Bundle: o.Labels[fragment.LabelBundle], Class: o.Labels[fragment.LabelClass],
		Signer: signer, Digest: digest, Profile: &fragment.ProfileSpec{},
	}
	if err := json.Unmarshal(o.Spec, f.Profile); err != nil {
		t.Fatal(err)
	}
	return f
}

func port(n int32) fragment.Neighbor {
	return fragment.Neighbor{Identifier: "db", Ports: []fragment.Port{{Port: &n}}}
}

// TestMerge shows what each field of two fragments becomes: base is merged first.
func TestMerge(t *testing.T) {
	type spec = fragment.ProfileSpec
	for name, tt := range map[string]struct{ base, overlay, want spec }{
		"sets are united and sorted": {
			spec{Architectures: []string{"arm64", "amd64"}, Capabilities: []string{"b"}, Syscalls: []string{"read", "open"}},
			spec{Architectures: []string{"amd64"}, Capabilities: []string{"a"}, Syscalls: []string{"open", "close"}},
			spec{Architectures: []string{"amd64", "arm64"}, Capabilities: []string{"a", "b"}, Syscalls: []string{"close", "open", "read"}},
		},
		"lists are appended, and what is equal stands once": {
			spec{Execs: []fragment.Exec{{Path: "/b"}, {Path: "/a"}}, Opens: []fragment.Open{{Path: "/o"}}, Endpoints: []fragment.Endpoint{{Endpoint: "/e"}}, IdentifiedCallStacks: []fragment.CallStack{{CallID: "1"}}},
			spec{Execs: []fragment.Exec{{Path: "/b"}, {Path: "/b", Args: []string{"x"}}}, Opens: []fragment.Open{{Path: "/o"}, {Path: "/o", Flags: []string{"O_RDONLY"}}}, Endpoints: []fragment.Endpoint{{Endpoint: "/e", Internal: true}}, IdentifiedCallStacks: []fragment.CallStack{{CallID: "2"}, {CallID: "1"}}},
			spec{Execs: []fragment.Exec{{Path: "/b"}, {Path: "/a"}, {Path: "/b", Args: []string{"x"}}}, Opens: []fragment.Open{{Path: "/o"}, {Path: "/o", Flags: []string{"O_RDONLY"}}}, Endpoints: []fragment.Endpoint{{Endpoint: "/e"}, {Endpoint: "/e", Internal: true}}, IdentifiedCallStacks: []fragment.CallStack{{CallID: "1"}, {CallID: "2"}}},
		},
		"a neighbour keeps its place and takes the last values": {
			spec{Ingress: []fragment.Neighbor{port(1), {Identifier: "x"}, port(2)}, Egress: []fragment.Neighbor{{Identifier: "y"}, port(1)}},
			spec{Egress: []fragment.Neighbor{port(3), {Identifier: "y", DNS: "new"}}},
			spec{Ingress: []fragment.Neighbor{port(2), {Identifier: "x"}}, Egress: []fragment.Neighbor{{Identifier: "y", DNS: "new"}, port(3)}},
		},
		"the last value that is set counts": {
			spec{ImageID: "one", ImageTag: "one", SeccompProfile: fragment.Seccomp{Name: "one"}},
			spec{ImageTag: "two"},
			spec{ImageID: "one", ImageTag: "two", SeccompProfile: fragment.Seccomp{Name: "one"}},
		},
		"a seccomp profile replaces the other as a whole": {
			spec{SeccompProfile: fragment.Seccomp{Name: "one", Path: "p"}},
			spec{SeccompProfile: fragment.Seccomp{Spec: fragment.SeccompSpec{DefaultAction: "a"}}},
			spec{SeccompProfile: fragment.Seccomp{Spec: fragment.SeccompSpec{DefaultAction: "a"}}},
		},
		"maps are merged, the last value of a key counts": {
			spec{RulePolicies: map[string]fragment.RulePolicy{"R1": {ContainerAllowed: true}, "R2": {}}, LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{"app": "one"}}},
			spec{RulePolicies: map[string]fragment.RulePolicy{"R1": {}}, LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{"app": "two", "tier": "x"}}},
			spec{RulePolicies: map[string]fragment.RulePolicy{"R1": {}, "R2": {}}, LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{"app": "two", "tier": "x"}}},
		},
		"expressions are appended, equal ones too": {
			spec{LabelSelector: fragment.LabelSelector{MatchExpressions: []fragment.Requirement{{Key: "a"}}}},
			spec{LabelSelector: fragment.LabelSelector{MatchExpressions: []fragment.Requirement{{Key: "a"}}}},
			spec{LabelSelector: fragment.LabelSelector{MatchExpressions: []fragment.Requirement{{Key: "a"}, {Key: "a"}}}},
		},
		"what is empty is nil": {
			spec{RulePolicies: map[string]fragment.RulePolicy{}, LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{}}, Execs: []fragment.Exec{}, Syscalls: []string{}, Ingress: []fragment.Neighbor{}},
			spec{},
			spec{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := assembled(t, []*fragment.Fragment{part("overlay/b", alice, 1, tt.overlay), part("base/a", bob, 1, tt.base)})
			if diff := cmp.Diff(tt.want, c.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Class first, then what the policy says, then signer, then digest.
func TestOrder(t *testing.T) {
	for name, tt := range map[string]struct {
		priority []string
		want     []string
	}{
		"by class, then signer": {nil, []string{"base/z", "base/a", "admission/m", "overlay/o", "alpha/y", "site/x"}},
		"a member that the policy names is stronger than its class, and no other": {
			[]string{"base/z"}, []string{"base/a", "base/z", "admission/m", "overlay/o", "alpha/y", "site/x"},
		},
		"members that it names stand as it names them": {
			[]string{"base/a", "base/z", "alpha/y"}, []string{"base/a", "base/z", "admission/m", "overlay/o", "site/x", "alpha/y"},
		},
		"a class that it names is stronger than all others": {
			[]string{"base"}, []string{"admission/m", "overlay/o", "alpha/y", "site/x", "base/z", "base/a"},
		},
		"classes that it names stand as it names them": {
			[]string{"overlay", "base", "base/z"}, []string{"admission/m", "alpha/y", "site/x", "overlay/o", "base/a", "base/z"},
		},
		"what is not there changes nothing": {
			[]string{"base/none", "none"}, []string{"base/z", "base/a", "admission/m", "overlay/o", "alpha/y", "site/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := assembled(t, []*fragment.Fragment{
				runs("site/x", bob, 1, "/x"), runs("overlay/o", alice, 1, "/o"), runs("base/a", bob, 1, "/a"),
				runs("alpha/y", alice, 1, "/y"), runs("admission/m", bob, 1, "/m"), runs("base/z", alice, 1, "/z"),
			}, tt.priority...)
			if diff := cmp.Diff(tt.want, members(c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDigestDecidesLast(t *testing.T) {
	first, second := runs("base/a", alice, 1, "/a"), runs("base/b", alice, 1, "/b")
	first.Digest, second.Digest = "2", "1"
	if diff := cmp.Diff([]string{"base/b", "base/a"}, members(assembled(t, []*fragment.Fragment{first, second}))); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoMember(t *testing.T) {
	good := runs("base/a", alice, 1, "/a")
	for name, tt := range map[string]struct {
		change func(*fragment.Fragment)
		want   decision.Reason
	}{
		"as it is":               {func(*fragment.Fragment) {}, decision.Verified},
		"rules":                  {func(f *fragment.Fragment) { f.Kind, f.Rules = fragment.KindRules, &fragment.RulesSpec{} }, decision.KindMismatch},
		"a profile without spec": {func(f *fragment.Fragment) { f.Profile = nil }, decision.KindMismatch},
		"of another bundle":      {func(f *fragment.Fragment) { f.Bundle = "nginx" }, decision.ClassUnknown},
		"without a class":        {func(f *fragment.Fragment) { f.Class = "" }, decision.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			f := runs("base/b", alice, 1, "/b")
			tt.change(f)
			_, err := bundle.Assemble([]*fragment.Fragment{good, f}, nil)
			wantReason(t, err, tt.want)
		})
	}
	alone := runs("base/b", alice, 1, "/b")
	alone.Bundle = ""
	_, err := bundle.Assemble([]*fragment.Fragment{alone}, nil)
	wantReason(t, err, decision.ClassUnknown)
	_, err = bundle.Assemble(nil, nil)
	wantReason(t, err, decision.MemberMissing)
}

// TestOrderOfListingMakesNoDifference assembles the same fragments in 10,000 orders.
func TestOrderOfListingMakesNoDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	fragments := contradicting(r, 12)
	for name, tt := range map[string]struct {
		priority     []string
		permutations int
	}{"as the format says": {nil, 10_000}, "as a policy says": {[]string{"site/m3", "overlay", "base/m0"}, 1000}} {
		t.Run(name, func(t *testing.T) {
			first := assembled(t, fragments, tt.priority...)
			if len(first.Conflicts) == 0 {
				t.Fatal("nothing contradicts: the order would make no difference anyway")
			}
			want := fmt.Sprintf("%+v", *first)
			for i := range tt.permutations {
				shuffled := append([]*fragment.Fragment{}, fragments...)
				r.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
				if got := fmt.Sprintf("%+v", *assembled(t, shuffled, tt.priority...)); got != want {
					t.Fatalf("permutation %d: %s\nwant %s", i, got, want)
				}
			}
		})
	}
}

// contradicting makes fragments of few classes and signers that overlap in all they say.
func contradicting(r *rand.Rand, n int) []*fragment.Fragment {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var all []*fragment.Fragment
	for i := range n {
		number := r.Int32N(3)
		all = append(all, part(pick("base", "admission", "overlay", "site", "alpha")+fmt.Sprint("/m", i), pick(alice, bob), 1, fragment.ProfileSpec{
			Execs: []fragment.Exec{{Path: pick("/a", "/b", "/c")}, {Path: pick("/a", "/b", "/c"), Args: []string{pick("x", "y")}}}, Syscalls: []string{pick("read", "open", "close")},
			ImageID: pick("", "one", "two"), ImageTag: pick("", "one", "two"), SeccompProfile: fragment.Seccomp{Name: pick("", "one", "two")},
			RulePolicies:  map[string]fragment.RulePolicy{pick("R1", "R2"): {ContainerAllowed: r.IntN(2) == 0}},
			LabelSelector: fragment.LabelSelector{MatchLabels: map[string]string{pick("app", "tier"): pick("x", "y")}, MatchExpressions: []fragment.Requirement{{Key: pick("a", "b")}}},
			Ingress:       []fragment.Neighbor{{Identifier: pick("a", "b"), DNS: pick("x", "y")}},
			Egress:        []fragment.Neighbor{{Identifier: pick("a", "b"), Ports: []fragment.Port{{Name: pick("p", "q"), Port: &number}}}},
		}))
	}
	return all
}
