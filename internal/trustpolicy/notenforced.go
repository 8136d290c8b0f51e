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
	return parts
}
