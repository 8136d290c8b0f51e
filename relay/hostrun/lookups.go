package hostrun

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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

// HostRuns are all that the relay watches.
func (l *lookups) HostRuns() []*object.HostRun { return l.runs }

// HostStatements are none: no run is judged by them.
func (l *lookups) HostStatements() []*object.HostStatement { return nil }

// NodeProviderID is that of the node that the run names.
func (l *lookups) NodeProviderID(name string) (id string, exists bool) {
	if name != l.node {
		return "", false
	}
	return l.providerID, l.nodeExists
}

// look reads what the rules for the run ask about.
func (r *Reconciler) look(ctx context.Context, run *v1alpha1.HostRun, j *judged) error {
	l := &lookups{host: j.host, node: run.Spec.NodeName}
	if j.stored.profile != nil {
		// One that cannot be read is refused when its phase is judged.
		if p, err := object.ParseJoinProfile(j.stored.profile); err == nil {
			l.profile = verify.FactsOf(p)
		}
	}
	if err := r.readNode(ctx, l); err != nil {
		return err
	}
	var all v1alpha1.HostRunList
	if err := r.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing HostRuns: %w", err)
	}
	for i := range all.Items {
		// One that cannot be read was never started, since it is judged first.
		if o, err := readRun(&all.Items[i]); err == nil {
			l.runs = append(l.runs, o)
		}
	}
	j.snapshot.Stored = l
	return nil
}

func (r *Reconciler) readNode(ctx context.Context, l *lookups) error {
	if l.node == "" {
		return nil
	}
	var node corev1.Node
	err := r.Reader.Get(ctx, client.ObjectKey{Name: l.node}, &node)
	if isNotFound(err) {
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
