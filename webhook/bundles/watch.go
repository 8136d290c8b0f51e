package bundles

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// lookForKinds is how often a kind that was not served is looked for.
const lookForKinds = 10 * time.Second

// kinds are watched by their metadata. No selector is used: an aggregated API server may ignore it, and
// then would hand over what was not asked for.
func kinds() []string {
	return []string{fragment.KindContainerProfile, fragment.KindRules, fragment.KindRuleBinding, kindBundle}
}

const kindBundle = "ProfileBundle"

// follow watches a kind as soon as it is served.
func (c *Controller) follow(ctx context.Context, kind string) {
	for !c.register(ctx, kind) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookForKinds):
		}
	}
}

func (c *Controller) register(ctx context.Context, kind string) bool {
	k := watchedKind(kind)
	mapping, err := snapshot.Served(c.Mapper, k.GroupKind, k.Prefer)
	if err != nil {
		c.Log.Warn("watching a kind; it is tried again", "kind", kind, "error", err)
		return false
	}
	if mapping == nil {
		c.index.learn(kind)
		return false
	}
	c.index.unlearn(kind)
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := c.Cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		c.Log.Warn("watching a kind; it is tried again", "kind", kind, "error", err)
		return false
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.seen(o) },
		UpdateFunc: func(_, o any) { c.seen(o) },
		DeleteFunc: func(o any) { c.gone(kind, o) },
	})
	if err != nil {
		c.Log.Warn("watching a kind; it is tried again", "kind", kind, "error", err)
		return false
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return true // ctx ended
	}
	c.index.learn(kind)
	c.Log.Info("watching", "kind", kind, "version", mapping.GroupVersionKind.Version, "objects", len(c.index.all(kind)))
	return true
}

func watchedKind(kind string) rejudge.Kind {
	if kind == kindBundle {
		return rejudge.Kind{GroupKind: schema.GroupKind{Group: object.GroupHostwarrant, Kind: kind}, Prefer: v1alpha1.GroupVersion().Version}
	}
	return kindOf(kind)
}

// synced reports whether all kinds are known: their stored objects, or that they are not served.
func (c *Controller) synced() bool { return c.index.learnt(kinds()) }

// seen takes a stored object in.
func (c *Controller) seen(o any) {
	k, ok := o.(*kept)
	if !ok {
		c.Log.Error("the informer holds what was not slimmed")
		return
	}
	old := c.index.put(k.facts)
	if old != nil && old.uid == k.facts.uid && old.version == k.facts.version {
		return
	}
	c.changed(k.facts, old)
}

// gone takes a deleted object out.
func (c *Controller) gone(kind string, o any) {
	key := Key{Kind: kind}
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		namespace, name, err := toolscache.SplitMetaNamespaceKey(last.Key)
		if err != nil {
			return
		}
		key.Namespace, key.Name = namespace, name
	} else if k, ok := o.(*kept); ok {
		key = k.facts.Key
	}
	c.reader.forget(key)
	if old := c.index.drop(key); old != nil {
		c.changed(old, nil)
	}
}

// changed queues what an object concerns, as it is and as it was.
func (c *Controller) changed(now, old *facts) {
	switch now.Kind {
	case fragment.KindContainerProfile:
	case kindBundle:
		c.bundleChanged(ID{now.Namespace, now.Name}, old == nil)
		return
	default:
		wait := settle
		if now.unsigned != nil && (old == nil || old.unsigned != nil) {
			wait = settleJunk
		}
		c.queue.AddAfter(item{rules: true}, wait)
		return
	}
	id := ID{now.Namespace, now.Name}
	if c.compositeChanged(id, now) {
		c.queue.Add(item{ID: id})
	}
	for _, id := range c.index.claimed(now.Key) {
		c.queue.AddAfter(item{ID: id}, c.settling(id))
	}
	for _, f := range []*facts{now, old} {
		if f == nil {
			continue
		}
		if at, ok := f.at(); ok && f.unsigned == nil {
			c.queue.AddAfter(item{ID: at.ID}, c.settling(at.ID))
		} else if ok && c.knows(at.ID) {
			c.queue.AddAfter(item{ID: at.ID}, settleJunk)
		}
	}
}
