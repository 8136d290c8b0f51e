package trustpolicy

import (
	"maps"
	"slices"
)

// NotEnforced names the parts that the policy gives and that no reader of this
// version acts on yet, so that none of them looks enforced: whoever loads or shows
// a policy says so. Exceptions that are not granted (unguarded, raw hosts, waivers,
// resets) refuse more than the policy asks for; the others refuse less.
func (p *Policy) NotEnforced() []string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(p.Clusters)) {
		if p.Clusters[id].UID != "" {
			parts = append(parts, "clusters."+id+".uid")
		}
	}
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"joinProfiles.unguarded", len(p.Unguarded) > 0},
		{"joinProfiles.hosts.raw", len(p.Hosts.Raw) > 0},
		{"joinProfiles.hosts.profiles", len(p.Hosts.Profiles) > 0},
		{"joinProfiles.hosts.namespaces", len(p.Hosts.Namespaces) > 0},
		{"fragmentClasses", len(p.FragmentClasses) > 0},
		{"ruleClasses", len(p.RuleClasses) > 0},
		{"bindingClasses", len(p.BindingClasses) > 0},
		{"learners", len(p.Learners) > 0},
		{"bundles", len(p.Bundles) > 0},
		{"revoked.fragmentSigners", len(p.RevokedFragmentSigners) > 0},
		{"resets", len(p.Resets) > 0},
		{"waivers", len(p.Waivers) > 0},
	} {
		if part.given {
			parts = append(parts, part.name)
		}
	}
	return parts
}
