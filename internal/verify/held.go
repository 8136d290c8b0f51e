package verify

import (
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Held is a Stored of plain values, as files hold them.
type Held struct {
	Profiles map[string]*ProfileFacts
	AllHosts []*object.Host
	Classes  []*object.NodeClass
	Runs     []*object.HostRun
	// Statements are in no order.
	Statements []*object.HostStatement
	// ProviderIDs are those of nodes, by name.
	ProviderIDs map[string]string
}

var _ Stored = (*Held)(nil)

// Profile is that of the name, nil where there is none.
func (h *Held) Profile(name string) *ProfileFacts { return h.Profiles[name] }

// Host is that of the name, nil where there is none.
func (h *Held) Host(namespace, name string) *object.Host {
	i := slices.IndexFunc(h.AllHosts, func(o *object.Host) bool { return o.Namespace == namespace && o.Name == name })
	if i < 0 {
		return nil
	}
	return h.AllHosts[i]
}

// Hosts are all of them.
func (h *Held) Hosts() []*object.Host { return h.AllHosts }

// NodeClasses are all of them.
func (h *Held) NodeClasses() []*object.NodeClass { return h.Classes }

// HostRuns are all of them.
func (h *Held) HostRuns() []*object.HostRun { return h.Runs }

// HostRunsFor are those that name the node.
func (h *Held) HostRunsFor(node string) []*object.HostRun {
	var named []*object.HostRun
	for _, r := range h.Runs {
		if r.NodeName == node {
			named = append(named, r)
		}
	}
	return named
}

// HostStatements are all of them.
func (h *Held) HostStatements() []*object.HostStatement { return h.Statements }

// NodeProviderID is that of a node.
func (h *Held) NodeProviderID(name string) (id string, exists bool) {
	id, exists = h.ProviderIDs[name]
	return id, exists
}
