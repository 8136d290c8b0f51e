package bundles

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// FieldManager owns the fields of composites.
const FieldManager = "hostwarrant-bundles"

// publisher stores composites. They are written whole, and not applied: a field that another manager
// added would outlive an apply.
type publisher struct {
	client client.Client
	// reader must not be a cache: what somebody wrote a moment ago has to be seen.
	reader client.Reader
	mapper meta.RESTMapper
}

// stored is the object under a bundle's name; nil where there is none, or it is being deleted.
func (p *publisher) stored(ctx context.Context, id ID) (*unstructured.Unstructured, error) {
	gvk, err := p.served()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err = p.reader.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

func (p *publisher) served() (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(fragment.APIVersionOf(fragment.KindContainerProfile))
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	mapping, err := snapshot.Served(p.mapper, gv.WithKind(fragment.KindContainerProfile).GroupKind(), gv.Version)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if mapping == nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the API server does not serve %s", fragment.KindContainerProfile)
	}
	return mapping.GroupVersionKind, nil
}

// publish makes what is stored the composite, and returns it as it is stored then. It writes nothing
// where that is so already.
func (p *publisher) publish(ctx context.Context, c *composite, stored *unstructured.Unstructured) (now *unstructured.Unstructured, wrote bool, err error) {
	if stored == nil {
		gvk, err := p.served()
		if err != nil {
			return nil, false, err
		}
		now = c.object(gvk.GroupVersion().String())
		err = p.client.Create(ctx, now, client.FieldOwner(FieldManager))
		return now, err == nil, p.stuck(c, now, err)
	}
	if len(c.differs(stored)) == 0 {
		return stored, false, nil
	}
	now = stored.DeepCopy()
	now.Object["spec"] = c.spec
	delete(now.Object, "status") // it is no part of what is written
	c.mark(now)
	err = p.client.Update(ctx, now, client.FieldOwner(FieldManager))
	return now, err == nil, p.stuck(c, now, err)
}

// stuck is err, or says that the API server stored something else than was written: a mutating webhook
// or a schema that drops fields. To write again at once would not end.
func (p *publisher) stuck(c *composite, now *unstructured.Unstructured, err error) error {
	if err != nil {
		return fmt.Errorf("storing the composite: %w", err)
	}
	if parts := c.differs(now); len(parts) > 0 {
		return decision.Errorf(decision.BytesChanged, "the API server stored other %s than were written", strings.Join(parts, " and ")).
			Try("look for mutating webhooks and for a schema that drops fields of ContainerProfile")
	}
	return nil
}

// remove deletes a composite of ours.
func (p *publisher) remove(ctx context.Context, stored *unstructured.Unstructured) error {
	uid := stored.GetUID()
	return client.IgnoreNotFound(p.client.Delete(ctx, stored, client.Preconditions{UID: &uid}))
}

// writer is who changed a stored object last, by what the API server recorded.
func writer(u *unstructured.Unstructured) string {
	entries := slices.DeleteFunc(slices.Clone(u.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldManager || e.Time == nil })
	if len(entries) == 0 {
		return ""
	}
	last := slices.MaxFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) })
	return decision.OneLine(last.Manager, 128)
}
