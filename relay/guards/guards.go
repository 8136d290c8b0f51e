package guards

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/drift"
)

const (
	// every is how often the guards are looked at; a tenth more or less.
	every = 30 * time.Second
	// againAfter is how soon they are while something is wrong.
	againAfter = 10 * time.Second
	// lookLimit bounds one look: some thirty reads.
	lookLimit = 15 * time.Second
	// maxLines bounds how many differences one log line names.
	maxLines = 16
)

// Watcher tells what differs. One replica, the one that leads, runs it.
type Watcher struct {
	Reader  client.Reader // what is stored, not a cache
	Shipped []drift.Object
	Metrics *Metrics
	Log     logr.Logger

	looks drift.Looks
	told  []string
	once  bool
}

// Start looks at once, and again until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	for {
		next := every
		if !w.Look(ctx) {
			next = againAfter
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait.Jitter(next*9/10, 0.2)):
		}
	}
}

// Look looks at each object once, and reports whether all of them are as shipped.
func (w *Watcher) Look(ctx context.Context) bool {
	looking, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	var lines []string
	for _, shipped := range w.Shipped {
		found := w.one(looking, shipped)
		if ctx.Err() != nil {
			return true // leaving
		}
		w.Metrics.seen(shipped, len(found) == 0)
		for _, d := range found {
			lines = append(lines, d.String())
		}
	}
	w.tell(lines)
	return len(lines) == 0
}

// one says how one object differs.
func (w *Watcher) one(ctx context.Context, shipped drift.Object) []drift.Difference {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(shipped.APIVersion())
	live.SetKind(shipped.Kind())
	err := w.Reader.Get(ctx, client.ObjectKey{Name: shipped.Name()}, live)
	if apierrors.IsNotFound(err) {
		return w.looks.At(shipped, nil)
	}
	if err != nil {
		return []drift.Difference{{Kind: shipped.Kind(), Name: shipped.Name(), What: fmt.Sprintf("cannot be read: %v", err)}}
	}
	return w.looks.At(shipped, live.Object)
}

// tell logs what changed since the last look.
func (w *Watcher) tell(lines []string) {
	if w.once && slices.Equal(lines, w.told) {
		return
	}
	w.told, w.once = lines, true
	if len(lines) == 0 {
		w.Log.Info("what guards the cluster is as shipped")
		return
	}
	w.Log.Info("ALARM: what guards the cluster is not as shipped; see docs/operations/self-protection.md, Alarms",
		"number", len(lines), "differences", lines[:min(len(lines), maxLines)])
}
