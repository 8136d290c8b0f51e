package bundles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// state is what is known of one bundle. One worker at a time has it, but for the atomic fields.
type state struct {
	ID
	// report is the ProfileBundle as it is stored; nil where there is none.
	report *v1alpha1.ProfileBundle
	// last is the composite that was accepted last, want what is stored of it; nil where there is none, or
	// it was lost.
	last *bundle.Composite
	want *composite
	// published is the stored object that was seen to be want; nil where none was.
	published *at
	// ours says that a composite was ever stored under the name: it is the bundle's, whoever writes there.
	ours bool
	// lost says that what was found stored was not what had been reported.
	lost bool
	// alarmed says that a member was found tampered with since a set was accepted last.
	alarmed bool
	members map[string]bool // names that are claimed in the index
	figures *figures        // under the lock of all states

	// inspect asks for a look at what is stored; driftSeen is when a foreign change was seen, in ns.
	inspect   atomic.Bool
	driftSeen atomic.Int64
	// stored is what the index last saw of the composite that we know.
	stored atomic.Pointer[at]
	// took is how long the last look took, in ns.
	took atomic.Int64
}

// at names a stored object in one version.
type at struct{ uid, version string }

// knows reports whether there is a state of a bundle.
func (c *Controller) knows(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[id] != nil
}

func (c *Controller) known(id ID) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[id]
}

// settling is how long to wait with a bundle that changed.
func (c *Controller) settling(id ID) time.Duration {
	st := c.known(id)
	if st == nil {
		return settle
	}
	return max(settle, 2*time.Duration(st.took.Load()))
}

// bundleChanged queues a bundle of which a report was found first, or whose report is gone.
func (c *Controller) bundleChanged(id ID, gone bool) {
	st := c.known(id)
	if st == nil || gone {
		c.queue.AddAfter(item{ID: id}, settle)
	}
}

// compositeChanged reports whether somebody else wrote what is stored under a bundle's name.
func (c *Controller) compositeChanged(id ID, f *facts) bool {
	st := c.known(id)
	if st == nil {
		return false
	}
	known := st.stored.Load()
	if known != nil && *known == (at{f.uid, f.version}) && c.index.get(f.Key) != nil {
		return false
	}
	st.inspect.Store(true)
	st.driftSeen.CompareAndSwap(0, c.Now().UnixNano())
	return true
}

// open gives the state of a bundle, and reads it from the cluster the first time: what an earlier
// leader reported and stored.
func (c *Controller) open(ctx context.Context, id ID) (*state, error) {
	if st := c.known(id); st != nil {
		return st, nil
	}
	st := &state{ID: id, members: map[string]bool{}}
	report := &v1alpha1.ProfileBundle{}
	err := c.Reader.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, report)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ProfileBundle: %w", err)
	}
	if err == nil {
		st.report = report
		if err := c.restore(ctx, st); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[id] = st
	return st, nil
}

// restore takes what is stored for the last composite, where it still is what was reported: nobody
// keeps the fragments that it was made of.
func (c *Controller) restore(ctx context.Context, st *state) error {
	status := st.report.Status
	st.ours = status.Composite != nil
	assembled := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAssembled)
	st.alarmed = assembled != nil && assembled.Reason == string(decision.Tampered)
	if !st.ours {
		return nil
	}
	if len(c.Ledger.Slots(st.Namespace, st.Name)) == 0 {
		c.Events.Warning(ctx, c.about(st), "LedgerLost", "the ledger holds no version of this bundle, although it had a composite: it is filled again from what is stored; "+
			"what was newer than that is not known any more; hint: docs/operations/bundles.md")
	}
	stored, err := c.composites.stored(ctx, st.ID)
	if err != nil {
		return fmt.Errorf("reading the composite: %w", err)
	}
	manifest, err := c.manifest(ctx, st, stored)
	if err != nil {
		return err
	}
	last := rebuilt(status, stored, manifest)
	if last == nil {
		st.lost = true
		st.driftSeen.Store(c.Now().UnixNano())
		c.Log.Warn("what is stored is not the composite that was reported last", "namespace", st.Namespace, "bundle", st.Name)
		return nil
	}
	st.want, err = compositeOf(st.ID, last)
	st.last = last
	return err
}

// rebuilt is the last composite by what is stored of it and what was reported; nil where these differ.
func rebuilt(status v1alpha1.ProfileBundleStatus, stored *unstructured.Unstructured, manifest []byte) *bundle.Composite {
	// check: Tampered: what somebody wrote while nobody looked must not pass for the last verified composite
	if stored == nil || digestOf(stored) != string(status.Composite.Digest) {
		return nil
	}
	c, err := bundle.ParseManifest(manifest)
	// check: Tampered: members that were never verified must not stand for those of the last composite
	if err != nil || c.Root != string(status.MerkleRoot) {
		return nil
	}
	// check: Tampered: names and versions are under no root, and a member under another name would drop out when it is altered
	if len(c.Leaves) != int(status.MemberCount) || !slices.Equal(members(c), status.Members) {
		return nil
	}
	spec, found, err := unstructured.NestedMap(stored.Object, "spec")
	if err != nil {
		return nil
	}
	if !found {
		return c // nothing in it is set
	}
	text, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(text, &c.Spec) != nil {
		return nil
	}
	return c
}

// claim tells the index which names concern the bundle.
func (c *Controller) claim(st *state, names map[string]bool) {
	for name := range st.members {
		if !names[name] {
			c.index.claim(Key{fragment.KindContainerProfile, st.Namespace, name}, st.ID, false)
		}
	}
	for name := range names {
		if !st.members[name] {
			c.index.claim(Key{fragment.KindContainerProfile, st.Namespace, name}, st.ID, true)
		}
	}
	st.members = names
}

// forget drops a bundle that is no more.
func (c *Controller) forget(st *state) {
	c.claim(st, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, st.ID)
}

var errOver = errors.New("the namespace is going")

// living asks whether a namespace stays: an aggregated API server takes objects of one that is going,
// and of one that is gone.
func (c *Controller) living(ctx context.Context, name string) error {
	var namespace corev1.Namespace
	err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
		return errOver
	}
	if err != nil {
		return fmt.Errorf("reading the namespace: %w", err)
	}
	return nil
}

// over reports whether a write was refused because its namespace is going or gone.
func over(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	gone := ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
	return gone || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
