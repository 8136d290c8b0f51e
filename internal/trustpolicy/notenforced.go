package trustpolicy

import (
	"maps"
	"slices"
)

// NotEnforced names the parts that the policy gives and that no reader of this
// version acts on yet, so that none of them looks enforced: whoever loads or shows
// a policy says so.
func (p *Policy) NotEnforced() []string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Hosts.Namespaces)) {
		if p.Hosts.Namespaces[name].HostCA != nil {
			parts = append(parts, "joinProfiles.hosts.namespaces."+name+".hostCA")
		}
	}
	slots := slices.ContainsFunc(p.Resets, func(r Reset) bool { return r.Slot != "" })
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"fragmentClasses", len(p.FragmentClasses) > 0},
		{"ruleClasses", len(p.RuleClasses) > 0},
		{"bindingClasses", len(p.BindingClasses) > 0},
		{"learners", len(p.Learners) > 0},
		{"bundles", len(p.Bundles) > 0},
		{"revoked.fragmentSigners", len(p.RevokedFragmentSigners) > 0},
		{"resets of slots", slots},
		{"waivers of fragments and rules", slices.ContainsFunc(p.Waivers, Waiver.later)},
	} {
		if part.given {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// later tells a waiver of a kind that admission does not judge yet.
func (w Waiver) later() bool {
	return !slices.Contains([]string{"SSHJoinProfile", "SSHHost", "SSHNodeClass"}, w.Kind)
}
