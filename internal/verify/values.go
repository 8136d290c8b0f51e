package verify

import (
	"maps"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// valuesOf wants every value of a limited path to match a pattern of the class.
// docs/spec/trust-policy.md says which text of each path is matched.
func valuesOf(c trustpolicy.FragmentClass, p *fragment.ProfileSpec) error {
	for _, path := range slices.Sorted(maps.Keys(c.Values)) {
		for _, text := range texts(path, p) {
			// check: ValueRefused: who may set a path may otherwise set anything in it, wildcards too
			if !c.Takes(path, text) {
				return refusedValue(path, text)
			}
		}
		for _, address := range addresses(path, p) {
			// check: ValueRefused: an address range reaches further than its text
			if !c.TakesAddress(path, address) {
				return refusedValue(path, address)
			}
		}
	}
	return nil
}

func refusedValue(path, value string) error {
	return decision.Errorf(decision.ValueRefused, "%.120q is in none of the values that its class allows", value).At("spec." + path).
		Try("leave it out, or let the policy's values take it")
}

// texts are the values of a path that say what is let through.
func texts(path string, p *fragment.ProfileSpec) []string {
	switch path {
	case "architectures":
		return p.Architectures
	case "capabilities":
		return p.Capabilities
	case "syscalls":
		return p.Syscalls
	case "execs":
		return each(p.Execs, func(e fragment.Exec) []string { return []string{e.Path} })
	case "opens":
		return each(p.Opens, func(o fragment.Open) []string { return []string{o.Path} })
	case "endpoints":
		return each(p.Endpoints, func(e fragment.Endpoint) []string { return []string{e.Endpoint} })
	case "imageID":
		return given(p.ImageID)
	case "imageTag":
		return given(p.ImageTag)
	case "rulePolicies":
		return slices.Sorted(maps.Keys(p.RulePolicies))
	case "ingress":
		return each(p.Ingress, names)
	case "egress":
		return each(p.Egress, names)
	default:
		return []string{""} // nobody knows what would be matched
	}
}

// names are those by which a neighbor is reached. Selectors stand for pods that no text names:
// "podSelector" and "namespaceSelector" as patterns allow them. One that names nothing is "".
func names(n fragment.Neighbor) []string {
	all := slices.Concat(given(n.DNS), n.DNSNames)
	if n.PodSelector != nil {
		all = append(all, "podSelector")
	}
	if n.NamespaceSelector != nil {
		all = append(all, "namespaceSelector")
	}
	if len(all) == 0 && n.IPAddress == "" {
		return []string{""}
	}
	return all
}

// addresses are the IP addresses and ranges of a path.
func addresses(path string, p *fragment.ProfileSpec) []string {
	address := func(n fragment.Neighbor) []string { return given(n.IPAddress) }
	switch path {
	case "ingress":
		return each(p.Ingress, address)
	case "egress":
		return each(p.Egress, address)
	default:
		return nil
	}
}

func each[T any](list []T, of func(T) []string) []string {
	var all []string
	for _, element := range list {
		all = append(all, of(element)...)
	}
	return all
}

func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
