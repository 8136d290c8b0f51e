package bundle

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

type spec = fragment.ProfileSpec

// merge gives the spec that sorted fragments make together, field by field.
func merge(sorted []ranked) (spec, error) {
	execs, errExecs := distinct(sorted, func(s *spec) []fragment.Exec { return s.Execs })
	opens, errOpens := distinct(sorted, func(s *spec) []fragment.Open { return s.Opens })
	endpoints, errEndpoints := distinct(sorted, func(s *spec) []fragment.Endpoint { return s.Endpoints })
	stacks, errStacks := distinct(sorted, func(s *spec) []fragment.CallStack { return s.IdentifiedCallStacks })
	if err := errors.Join(errExecs, errOpens, errEndpoints, errStacks); err != nil {
		return spec{}, decision.Errorf(decision.Malformed, "%v", err)
	}
	return spec{
		Architectures:        union(sorted, func(s *spec) []string { return s.Architectures }),
		Capabilities:         union(sorted, func(s *spec) []string { return s.Capabilities }),
		Execs:                execs,
		Opens:                opens,
		Syscalls:             union(sorted, func(s *spec) []string { return s.Syscalls }),
		SeccompProfile:       last(sorted, seccomp),
		Endpoints:            endpoints,
		ImageID:              last(sorted, func(s *spec) (string, bool) { return s.ImageID, s.ImageID != "" }),
		ImageTag:             last(sorted, func(s *spec) (string, bool) { return s.ImageTag, s.ImageTag != "" }),
		RulePolicies:         overlaid(sorted, func(s *spec) map[string]fragment.RulePolicy { return s.RulePolicies }),
		IdentifiedCallStacks: stacks,
		LabelSelector: fragment.LabelSelector{
			MatchLabels:      overlaid(sorted, func(s *spec) map[string]string { return s.MatchLabels }),
			MatchExpressions: concatenated(sorted, func(s *spec) []fragment.Requirement { return s.MatchExpressions }),
		},
		Ingress: keyed(sorted, func(s *spec) []fragment.Neighbor { return s.Ingress }),
		Egress:  keyed(sorted, func(s *spec) []fragment.Neighbor { return s.Egress }),
	}, nil
}

// union is the set of all values, sorted.
func union(sorted []ranked, of func(*spec) []string) []string {
	all := concatenated(sorted, of)
	slices.Sort(all)
	return slices.Compact(all)
}

func concatenated[T any](sorted []ranked, of func(*spec) []T) []T {
	var all []T
	for _, f := range sorted {
		all = append(all, of(f.Profile)...)
	}
	return all
}

// distinct drops what was there already, by all of its JSON.
func distinct[T any](sorted []ranked, of func(*spec) []T) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	for _, f := range sorted {
		for _, value := range of(f.Profile) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			if !seen[string(text)] {
				seen[string(text)] = true
				all = append(all, value)
			}
		}
	}
	return all, nil
}

// keyed keeps one neighbour for each identifier: in the place of the first, with the values of the last.
func keyed(sorted []ranked, of func(*spec) []fragment.Neighbor) []fragment.Neighbor {
	var all []fragment.Neighbor
	place := map[string]int{}
	for _, f := range sorted {
		for _, n := range of(f.Profile) {
			if i, there := place[n.Identifier]; there {
				all[i] = n
				continue
			}
			place[n.Identifier] = len(all)
			all = append(all, n)
		}
	}
	return all
}

// overlaid merges maps, the last value of a key wins; nil where there is no key.
func overlaid[V any](sorted []ranked, of func(*spec) map[string]V) map[string]V {
	var all map[string]V
	for _, f := range sorted {
		for key, value := range of(f.Profile) {
			if all == nil {
				all = map[string]V{}
			}
			all[key] = value
		}
	}
	return all
}

// last is the last value that is set.
func last[T any](sorted []ranked, of func(*spec) (value T, set bool)) T {
	var found T
	for _, f := range sorted {
		if value, set := of(f.Profile); set {
			found = value
		}
	}
	return found
}

// seccomp is set where anything of it is, as for confinement.
func seccomp(s *spec) (fragment.Seccomp, bool) {
	return s.SeccompProfile, slices.Contains(s.Set(), "seccompProfile")
}
