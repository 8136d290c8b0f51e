package bundles

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// Key names a stored object.
type Key struct{ Kind, Namespace, Name string }

// facts are what is kept of a stored object: a few hundred bytes, whatever it holds. Nothing of it
// was verified.
type facts struct {
	Key
	uid, version  string
	deleting      bool
	bundle, class string
	// signer is whom the certificate names; unsigned says why the object need not be read at all.
	signer   string
	unsigned *decision.Error
}

func factsOf(kind string, o metav1.Object) *facts {
	labels := o.GetLabels()
	f := &facts{
		Key: Key{kind, o.GetNamespace(), o.GetName()}, uid: string(o.GetUID()), version: o.GetResourceVersion(),
		deleting: o.GetDeletionTimestamp() != nil, bundle: labels[fragment.LabelBundle], class: labels[fragment.LabelClass],
	}
	s, err := signature.Read(o.GetAnnotations())
	if err != nil {
		f.unsigned = decision.From(err)
		return f
	}
	f.signer = s.Signer
	return f
}

// kept is what the cache stores of an object.
type kept struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	facts *facts
}

// DeepCopyObject copies all but the facts, which are never changed.
func (k *kept) DeepCopyObject() runtime.Object {
	c := *k
	c.ObjectMeta = *k.DeepCopy()
	return &c
}

// Slim is the Transform of a cache: of objects of our kinds that are watched by their metadata it keeps
// the facts, and leaves every other object alone. Annotations alone may have 256 KiB.
func Slim(o any) (any, bool) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok || watchedKind(m.Kind).GroupKind != m.GroupVersionKind().GroupKind() {
		return o, false
	}
	return &kept{
		TypeMeta:   m.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion},
		facts:      factsOf(m.Kind, m),
	}, true
}
