package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// kept is what the cache stores of an object: what tells it from others, and what is read of it.
type kept struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value any
}

// DeepCopyObject copies all but the value, which is never changed.
func (k *kept) DeepCopyObject() runtime.Object {
	c := *k
	c.ObjectMeta = *k.DeepCopy()
	return &c
}

func keep(o metav1.Object, value any) *kept {
	return &kept{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
		},
		value: value,
	}
}

// Slim is the Transform of a cache: it keeps of the kinds that a Store watches only what is judged
// by, and leaves every other object alone.
func Slim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		return keep(o, o.Spec.ProviderID), nil
	case *unstructured.Unstructured:
		read := readers()[o.GroupVersionKind().GroupKind().String()]
		if read == nil {
			return o, nil
		}
		return keep(o, read(o)), nil
	default:
		return o, nil // a tombstone, or what was slimmed before
	}
}

// readers say how a kind is read, by "Kind.group".
func readers() map[string]func(*unstructured.Unstructured) any {
	return map[string]func(*unstructured.Unstructured) any{
		object.KindJoinProfile + "." + object.GroupKPSSH:         readProfile,
		object.KindHost + "." + object.GroupKPSSH:                parsed(object.ParseHost, leanHost),
		object.KindNodeClass + "." + object.GroupKPSSH:           parsed(object.ParseNodeClass, leanClass),
		object.KindHostRun + "." + object.GroupHostwarrant:       parsed(object.ParseHostRun, leanRun),
		object.KindHostStatement + "." + object.GroupHostwarrant: parsed(object.ParseHostStatement, leanStatement),
		kindLedger + "." + object.GroupHostwarrant:               readLedger,
	}
}

// parsed reads an object by the engine's own reader. One that it cannot read is nil: it was stored
// past the webhook, and vouches for nothing.
func parsed[T any](parse func([]byte) (*T, error), lean func(*T) *T) func(*unstructured.Unstructured) any {
	return func(u *unstructured.Unstructured) any {
		raw, err := u.MarshalJSON()
		if err != nil {
			return (*T)(nil)
		}
		value, err := parse(raw)
		if err != nil {
			return (*T)(nil)
		}
		return lean(value)
	}
}

// readProfile keeps no script. A profile that cannot be read is known by its name alone.
func readProfile(u *unstructured.Unstructured) any {
	facts := &verify.ProfileFacts{Meta: object.Meta{Kind: object.KindJoinProfile, Name: u.GetName(), UID: string(u.GetUID())}}
	raw, err := u.MarshalJSON()
	if err != nil {
		return facts
	}
	p, err := object.ParseJoinProfile(raw)
	if err != nil {
		return facts
	}
	facts = verify.FactsOf(p)
	forget(&facts.Meta)
	return facts
}
