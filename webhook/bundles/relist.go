package bundles

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// relistPage is how many objects' metadata are listed at once, where the API server knows pages.
const relistPage = 500

// relist compares what is known of a kind with what is stored. A watch of an aggregated API server may
// begin later than the list before it, and then nobody tells of what happened in between.
func (c *Controller) relist(ctx context.Context, kind string) error {
	k := watchedKind(kind)
	mapping, err := snapshot.Served(c.Mapper, k.GroupKind, k.Prefer)
	if err != nil || mapping == nil {
		return err
	}
	before := map[Key]*facts{}
	for _, f := range c.index.all(kind) {
		before[f.Key] = f
	}
	found := map[Key]bool{}
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind + "List"))
		if err := c.Reader.List(ctx, list, client.Limit(relistPage), client.Continue(next)); err != nil {
			return fmt.Errorf("listing the metadata of kind %s: %w", kind, err)
		}
		for i := range list.Items {
			f := factsOf(kind, &list.Items[i])
			found[f.Key] = true
			known := before[f.Key]
			if known == nil || known.uid != f.uid || known.version != f.version {
				c.missed(f.Key, known, f)
			}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	for key, known := range before {
		if !found[key] {
			c.missed(key, known, nil)
		}
	}
	return nil
}

// missed takes in what the watch did not tell, unless it told something else meanwhile. Now is nil for
// an object that is gone.
func (c *Controller) missed(key Key, before, now *facts) {
	if c.index.get(key) != before {
		return
	}
	c.Log.Info("the watch did not tell of a change", "kind", key.Kind, "namespace", key.Namespace, "name", key.Name, "gone", now == nil)
	if now == nil {
		c.reader.forget(key)
		if old := c.index.drop(key); old != nil {
			c.changed(old, nil)
		}
		return
	}
	c.changed(now, c.index.put(now))
}
