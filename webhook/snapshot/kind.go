package snapshot

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// state is what is known of a kind.
type state string

const (
	unread  state = "unread"  // the zero of every kind: nothing is known yet
	absent  state = "absent"  // the cluster does not serve it, so that it holds none
	watched state = "watched" // every stored object was read once, and changes follow
)

// kind is one kind that is watched.
type kind struct {
	schema.GroupKind
	prefer string // the version that is read where it is served
	put    func(key string, value any)
	drop   func(key string)
	size   func() int

	wake  chan struct{} // asks for a look before the next is due
	known chan struct{} // closed once the state is no longer unread

	mu      sync.Mutex
	state   state
	version string
}

func newKind(gk schema.GroupKind, prefer string, put func(string, any), drop func(string), size func() int) *kind {
	return &kind{
		GroupKind: gk, prefer: prefer, put: put, drop: drop, size: size, state: unread,
		wake: make(chan struct{}, 1), known: make(chan struct{}),
	}
}

func (k *kind) read() (state, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.version
}

func (k *kind) become(s state, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == unread && s != unread {
		select {
		case <-k.known:
		default:
			close(k.known)
		}
	}
	k.state, k.version = s, version
}

// look asks for a look at once.
func (k *kind) look() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// watch finds the version that is served, and follows the kind until ctx ends.
func (s *Store) watch(ctx context.Context, k *kind) {
	for {
		mapping, err := Served(s.mapper, k.GroupKind, k.prefer)
		switch {
		case err != nil:
			s.log.Warn("finding a kind; nothing is decided until it is known", "kind", k.Kind, "error", err)
		case mapping == nil:
			k.become(absent, "")
		default:
			if s.follow(ctx, k, mapping.GroupVersionKind.Version) {
				<-ctx.Done()
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-time.After(lookEvery):
		}
	}
}

// Served is where a kind is to be read: in the version whose fields we know, else in the one that the
// cluster prefers; nil where it serves none. An error is no answer.
func Served(mapper meta.RESTMapper, kind schema.GroupKind, prefer string) (*meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind, prefer)
	if meta.IsNoMatchError(err) {
		mapping, err = mapper.RESTMapping(kind)
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return mapping, err
}

// follow starts the informer and waits until every stored object was handed over.
func (s *Store) follow(ctx context.Context, k *kind, version string) bool {
	k.become(unread, "")
	var o client.Object = &corev1.Node{}
	if k.Group != corev1.GroupName {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.WithVersion(version))
		o = u
	}
	informer, err := s.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		s.log.Warn("watching a kind; nothing is decided until it works", "kind", k.Kind, "error", err)
		return false
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.take(k, o) },
		UpdateFunc: func(_, o any) { s.take(k, o) },
		DeleteFunc: func(o any) { s.forget(k, o) },
	})
	if err != nil {
		s.log.Warn("watching a kind; nothing is decided until it works", "kind", k.Kind, "error", err)
		return false
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return false
	}
	k.become(watched, version)
	s.log.Info("watching", "kind", k.Kind, "version", version, "objects", k.size())
	return true
}

// take hands over a stored object.
func (s *Store) take(k *kind, o any) {
	u, ok := o.(*kept)
	if !ok {
		s.log.Error("the informer holds what was not slimmed", "kind", k.Kind, "type", fmt.Sprintf("%T", o))
		return
	}
	k.put(keyOf(u), u.value)
}

// forget takes a deleted object out.
func (s *Store) forget(k *kind, o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		k.drop(last.Key)
		return
	}
	if u, ok := o.(*kept); ok {
		k.drop(keyOf(u))
	}
}

func keyOf(u *kept) string {
	if u.Namespace == "" {
		return u.Name
	}
	return u.Namespace + "/" + u.Name
}
