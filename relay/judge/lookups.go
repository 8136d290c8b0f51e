package judge

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// lookups is what the rules for a HostRun ask about: what the cluster holds of the things that one
// run names, read for it alone. It implements verify.Stored.
type lookups struct {
	host    *object.Host
	profile *verify.ProfileFacts
	runs    []*object.HostRun

	node       string
	providerID string
	nodeExists bool
}

// Profile is the run's own; of others nothing is known, and nothing is asked.
func (l *lookups) Profile(name string) *verify.ProfileFacts {
	if l.profile == nil || l.profile.Name != name {
		return nil
	}
	return l.profile
}

// Host is the run's own.
func (l *lookups) Host(namespace, name string) *object.Host {
	if l.host == nil || l.host.Namespace != namespace || l.host.Name != name {
		return nil
	}
	return l.host
}

// Hosts is the run's own.
func (l *lookups) Hosts() []*object.Host {
	if l.host == nil {
		return nil
	}
	return []*object.Host{l.host}
}

// NodeClasses are none: a run does not come from one.
func (l *lookups) NodeClasses() []*object.NodeClass { return nil }

// HostRuns are those of the node's name, of all that the program watches.
func (l *lookups) HostRuns() []*object.HostRun { return l.runs }

// HostRunsFor are those that name the node.
func (l *lookups) HostRunsFor(node string) []*object.HostRun {
	if node != l.node {
		return nil
	}
	return l.runs
}

// HostStatements are none: no run is judged by them.
func (l *lookups) HostStatements() []*object.HostStatement { return nil }

// NodeProviderID is that of the node that the run names.
func (l *lookups) NodeProviderID(name string) (id string, exists bool) {
	if name != l.node {
		return "", false
	}
	return l.providerID, l.nodeExists
}

// Look reads what the rules for the run ask about.
func (o Objects) Look(ctx context.Context, run *v1alpha1.HostRun, host *object.Host, st Stored) (verify.Stored, error) {
	l := &lookups{host: host, node: run.Spec.NodeName}
	if st.Profile != nil {
		// One that cannot be read is refused when its phase is judged.
		if p, err := object.ParseJoinProfile(st.Profile); err == nil {
			l.profile = verify.FactsOf(p)
		}
	}
	if err := o.readNode(ctx, l); err != nil {
		return nil, err
	}
	return l, o.readRuns(ctx, l)
}

// NodeNames is the index of HostRuns by the node's name.
const NodeNames = "spec.nodeName"

// NodeNameOf is the key of a HostRun in that index; it has none where it names no node.
func NodeNameOf(o client.Object) []string {
	run, ok := o.(*v1alpha1.HostRun)
	if !ok || run.Spec.NodeName == "" {
		return nil
	}
	return []string{run.Spec.NodeName}
}

// IndexRuns has the cache that Objects.Runs reads keep that index: looking through thousands of runs for
// each would be most of the work.
func IndexRuns(ctx context.Context, cache client.FieldIndexer) error {
	if err := cache.IndexField(ctx, &v1alpha1.HostRun{}, NodeNames, NodeNameOf); err != nil {
		return fmt.Errorf("indexing HostRuns by the node's name: %v", err)
	}
	return nil
}

// readRuns reads the runs of the node's name, which are all that the rules ask about. What the cache holds
// is looked at in place.
func (o Objects) readRuns(ctx context.Context, l *lookups) error {
	if l.node == "" {
		return nil
	}
	var all v1alpha1.HostRunList
	if err := o.Runs.List(ctx, &all, client.MatchingFields{NodeNames: l.node}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing HostRuns: %w", err)
	}
	for i := range all.Items {
		// One that cannot be read was never started, since it is judged first.
		if r, err := readRun(&all.Items[i]); err == nil {
			l.runs = append(l.runs, r)
		}
	}
	return nil
}

func (o Objects) readNode(ctx context.Context, l *lookups) error {
	if l.node == "" {
		return nil
	}
	var node corev1.Node
	err := o.Reader.Get(ctx, client.ObjectKey{Name: l.node}, &node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Node %q: %w", l.node, err)
	}
	l.providerID, l.nodeExists = node.Spec.ProviderID, true
	return nil
}

// readRun reads a run as the engine does.
func readRun(run *v1alpha1.HostRun) (*object.HostRun, error) {
	typed := run.DeepCopy()
	typed.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(object.KindHostRun))
	raw, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	return object.ParseHostRun(raw)
}
