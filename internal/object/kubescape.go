package object

import "strings"

// ManagedByAnnotation of kubescape says User where a person, and not the agent, wrote an object.
const ManagedByAnnotation = GroupKubescape + "/managed-by"

// Claims reports whether a label or annotation of that name belongs to kubescape's signatures.
func Claims(name string) bool { return strings.HasPrefix(name, "signature."+GroupKubescape+"/") }

// ManagedByUser reports whether an object says that a person wrote it. Other spellings of the
// word count too: what a reader could take for it must not pass as the agent's.
func (m Meta) ManagedByUser() bool {
	return strings.EqualFold(m.Annotations[ManagedByAnnotation], "User")
}

// Claimed reports whether anything in an object says that a person or a signer stands behind it.
func (m Meta) Claimed() bool {
	for _, names := range []map[string]string{m.Labels, m.Annotations} {
		for name := range names {
			if Claims(name) {
				return true
			}
		}
	}
	return m.ManagedByUser()
}
