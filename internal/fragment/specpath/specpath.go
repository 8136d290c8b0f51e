// Package specpath names the parts of a ContainerProfile's spec: the one table behind
// what a class may set, what a fragment sets, and where a stored spec differs from the
// signed one. It knows no types, so that the trust policy can read it.
package specpath

import "slices"

// Path is a part of the spec that a class may be allowed to set.
type Path struct {
	Name string
	Keys []string // the fields of the spec that it stands for
}

// All are the paths, in the order in which the format writes the fields.
func All() []Path {
	return []Path{
		{"architectures", []string{"architectures"}},
		{"capabilities", []string{"capabilities"}},
		{"execs", []string{"execs"}},
		{"opens", []string{"opens"}},
		{"syscalls", []string{"syscalls"}},
		{"seccompProfile", []string{"seccompProfile"}},
		{"endpoints", []string{"endpoints"}},
		{"imageID", []string{"imageID"}},
		{"imageTag", []string{"imageTag"}},
		{"rulePolicies", []string{"rulePolicies"}},
		{"identifiedCallStacks", []string{"identifiedCallStacks"}},
		{"labelSelector", []string{"matchLabels", "matchExpressions"}},
		{"ingress", []string{"ingress"}},
		{"egress", []string{"egress"}},
	}
}

// Names are those of All.
func Names() []string {
	var names []string
	for _, path := range All() {
		names = append(names, path.Name)
	}
	return names
}

// Of is the name of the path that a field of the spec belongs to, "" of a field that the kind has not.
func Of(key string) string {
	for _, path := range All() {
		if slices.Contains(path.Keys, key) {
			return path.Name
		}
	}
	return ""
}
