package bundle

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

type spec = fragment.ProfileSpec

// merge gives the spec that sorted fragments make together. It looks at each fragment
// once: many do not fit into a processor's caches.
func merge(sorted []ranked) (spec, error) {
	m := &merger{}
	for _, f := range sorted {
		m.add(f.Profile)
	}
	for _, err := range []error{m.execs.err, m.opens.err, m.endpoints.err, m.stacks.err} {
		if err != nil {
			return spec{}, decision.Errorf(decision.Malformed, "%v", err)
		}
	}
	return m.spec(), nil
}

// merger is a spec in the making: one rule for each field.
type merger struct {
	architectures, capabilities, syscalls union
	execs                                 distinct[fragment.Exec]
	opens                                 distinct[fragment.Open]
	endpoints                             distinct[fragment.Endpoint]
	stacks                                distinct[fragment.CallStack]
	seccomp                               fragment.Seccomp
	imageID, imageTag                     string
	rulePolicies                          overlaid[fragment.RulePolicy]
	matchLabels                           overlaid[string]
	matchExpressions                      []fragment.Requirement
	ingress, egress                       keyed
}

func (m *merger) add(s *spec) {
	m.architectures.add(s.Architectures)
	m.capabilities.add(s.Capabilities)
	m.syscalls.add(s.Syscalls)
	m.execs.add(s.Execs)
	m.opens.add(s.Opens)
	m.endpoints.add(s.Endpoints)
	m.stacks.add(s.IdentifiedCallStacks)
	if isSet(&s.SeccompProfile) {
		m.seccomp = s.SeccompProfile
	}
	if s.ImageID != "" {
		m.imageID = s.ImageID
	}
	if s.ImageTag != "" {
		m.imageTag = s.ImageTag
	}
	m.rulePolicies.add(s.RulePolicies)
	m.matchLabels.add(s.MatchLabels)
	m.matchExpressions = append(m.matchExpressions, s.MatchExpressions...)
	m.ingress.add(s.Ingress)
	m.egress.add(s.Egress)
}

func (m *merger) spec() spec {
	return spec{
		Architectures: m.architectures.sorted(), Capabilities: m.capabilities.sorted(), Syscalls: m.syscalls.sorted(),
		Execs: m.execs.all, Opens: m.opens.all, Endpoints: m.endpoints.all, IdentifiedCallStacks: m.stacks.all,
		SeccompProfile: m.seccomp, ImageID: m.imageID, ImageTag: m.imageTag, RulePolicies: m.rulePolicies.all,
		LabelSelector: fragment.LabelSelector{MatchLabels: m.matchLabels.all, MatchExpressions: m.matchExpressions},
		Ingress:       m.ingress.all, Egress: m.egress.all,
	}
}

func isSet(s *fragment.Seccomp) bool { return !reflect.DeepEqual(*s, fragment.Seccomp{}) }

// union is a set of texts.
type union struct{ all []string }

func (u *union) add(values []string) { u.all = append(u.all, values...) }

func (u *union) sorted() []string {
	slices.Sort(u.all)
	return slices.Compact(u.all)
}

// distinct is a list without what was there already, by all of its JSON.
type distinct[T any] struct {
	all  []T
	seen map[string]bool
	err  error
}

func (d *distinct[T]) add(values []T) {
	for i := range values {
		text, err := json.Marshal(&values[i])
		if err != nil {
			d.err = err
			return
		}
		if d.seen[string(text)] {
			continue
		}
		if d.seen == nil {
			d.seen = map[string]bool{}
		}
		d.seen[string(text)] = true
		d.all = append(d.all, values[i])
	}
}

// keyed has one neighbour for each identifier: in the place of the first, with the values of the last.
type keyed struct {
	all   []fragment.Neighbor
	place map[string]int
}

func (k *keyed) add(values []fragment.Neighbor) {
	for i := range values {
		if at, there := k.place[values[i].Identifier]; there {
			k.all[at] = values[i]
			continue
		}
		if k.place == nil {
			k.place = map[string]int{}
		}
		k.place[values[i].Identifier] = len(k.all)
		k.all = append(k.all, values[i])
	}
}

// overlaid is a map in which the last value of a key counts; nil where there is no key.
type overlaid[V any] struct{ all map[string]V }

func (o *overlaid[V]) add(values map[string]V) {
	for key, value := range values {
		if o.all == nil {
			o.all = map[string]V{}
		}
		o.all[key] = value
	}
}
