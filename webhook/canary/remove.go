package canary

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// remove deletes a canary that was stored, and reports whether it was. A trust policy under such a name
// takes no effect, and we have no right to look for one or to delete it.
func (p *Prober) remove(ctx context.Context, k Served, name string) (bool, error) {
	if k.Name == object.KindTrustPolicy {
		return false, nil
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name})
	o.SetName(name)
	if k.Namespaced {
		o.SetNamespace(p.Namespace)
	}
	if err := p.Reader.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, client.IgnoreNotFound(p.Client.Delete(ctx, o))
}
