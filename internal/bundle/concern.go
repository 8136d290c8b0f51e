package bundle

import (
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Concerns reports whether a stored object is worth being read for the bundle, by its
// metadata alone: it has a known member's name, whatever its labels say; or it is
// labelled for the bundle, with a class, and carries a signature. Labels and presence of
// a signature are anybody's word: they decide what is looked at, and nothing else.
func Concerns(m object.Meta, bundle string, known func(name string) bool) bool {
	if known(m.Name) {
		return true
	}
	_, signed := m.Annotations[fragment.AnnotationSignature]
	return signed && m.Labels[fragment.LabelBundle] == bundle && m.Labels[fragment.LabelClass] != ""
}
