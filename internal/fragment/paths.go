package fragment

import "reflect"

// specPath is a part of a ContainerProfile's spec that a class may be allowed to set.
type specPath struct {
	name string
	keys []string // the fields of the spec that it stands for
	set  func(*ProfileSpec) bool
}

// specPaths is the one table behind confinement and divergence.
func specPaths() []specPath {
	return []specPath{
		{"architectures", []string{"architectures"}, func(p *ProfileSpec) bool { return len(p.Architectures) > 0 }},
		{"capabilities", []string{"capabilities"}, func(p *ProfileSpec) bool { return len(p.Capabilities) > 0 }},
		{"execs", []string{"execs"}, func(p *ProfileSpec) bool { return len(p.Execs) > 0 }},
		{"opens", []string{"opens"}, func(p *ProfileSpec) bool { return len(p.Opens) > 0 }},
		{"syscalls", []string{"syscalls"}, func(p *ProfileSpec) bool { return len(p.Syscalls) > 0 }},
		{"seccompProfile", []string{"seccompProfile"}, func(p *ProfileSpec) bool { return !reflect.DeepEqual(p.SeccompProfile, Seccomp{}) }},
		{"endpoints", []string{"endpoints"}, func(p *ProfileSpec) bool { return len(p.Endpoints) > 0 }},
		{"imageID", []string{"imageID"}, func(p *ProfileSpec) bool { return p.ImageID != "" }},
		{"imageTag", []string{"imageTag"}, func(p *ProfileSpec) bool { return p.ImageTag != "" }},
		{"rulePolicies", []string{"rulePolicies"}, func(p *ProfileSpec) bool { return len(p.RulePolicies) > 0 }},
		{"identifiedCallStacks", []string{"identifiedCallStacks"}, func(p *ProfileSpec) bool { return len(p.IdentifiedCallStacks) > 0 }},
		{"labelSelector", []string{"matchLabels", "matchExpressions"}, func(p *ProfileSpec) bool {
			return len(p.MatchLabels) > 0 || len(p.MatchExpressions) > 0
		}},
		{"ingress", []string{"ingress"}, func(p *ProfileSpec) bool { return len(p.Ingress) > 0 }},
		{"egress", []string{"egress"}, func(p *ProfileSpec) bool { return len(p.Egress) > 0 }},
	}
}

// SpecPaths are the parts of a ContainerProfile's spec that a class may allow.
func SpecPaths() []string {
	var names []string
	for _, path := range specPaths() {
		names = append(names, path.name)
	}
	return names
}

// Set are the SpecPaths that the spec sets, in their order.
func (p *ProfileSpec) Set() []string {
	var names []string
	for _, path := range specPaths() {
		if path.set(p) {
			names = append(names, path.name)
		}
	}
	return names
}
