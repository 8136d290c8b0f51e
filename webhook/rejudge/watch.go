package rejudge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// changeOf is what an informer told of a change.
type changeOf struct {
	uid    string
	number int64
	gone   bool
}

// dirty collects the objects that changed since it was asked last.
type dirty struct {
	mu   sync.Mutex
	keys map[Key]changeOf
}

func newDirty() *dirty { return &dirty{keys: map[Key]changeOf{}} }

func (d *dirty) add(k Key, c changeOf) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[k] = c
}

func (d *dirty) take() map[Key]changeOf {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys
	d.keys = map[Key]changeOf{}
	return keys
}

func (d *dirty) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.keys)
}

// lookForKinds is how often a kind that was not served is looked for.
const lookForKinds = 30 * time.Second

// Watch tells a Scanner of changed objects. Only what names an object is read of what the cache holds.
type Watch struct {
	Cache   cache.Cache
	Mapper  meta.RESTMapper
	Scanner *Scanner
	Log     *slog.Logger
}

// NeedLeaderElection says that one replica judges again.
func (w *Watch) NeedLeaderElection() bool { return true }

// Start watches until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, k := range Kinds() {
		all.Go(func() { w.follow(ctx, k) })
	}
	all.Wait()
	return nil
}

// follow watches a kind as soon as it is served.
func (w *Watch) follow(ctx context.Context, k Kind) {
	for !w.register(ctx, k) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookForKinds):
		}
	}
	<-ctx.Done()
}

func (w *Watch) register(ctx context.Context, k Kind) bool {
	mapping, err := snapshot.Served(w.Mapper, k.GroupKind, k.Prefer)
	if err != nil || mapping == nil {
		return false
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := w.Cache.GetInformer(ctx, u, cache.BlockUntilSynced(false))
	if err != nil {
		w.Log.Warn("watching a kind; scans see its changes later", "kind", k.Kind, "error", err)
		return false
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if !initial { // a scan reads those
				w.note(k.Kind, o, false)
			}
		},
		UpdateFunc: func(_, o any) { w.note(k.Kind, o, false) },
		DeleteFunc: func(o any) { w.note(k.Kind, o, true) },
	})
	return err == nil
}

// note marks an object as changed.
func (w *Watch) note(kind string, o any, gone bool) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return // a tombstone without its object: the next scan sees that it is gone
	}
	key := Key{kind, m.GetNamespace(), m.GetName()}
	w.Scanner.dirty.add(key, changeOf{uid: string(m.GetUID()), number: m.GetGeneration(), gone: gone})
}
