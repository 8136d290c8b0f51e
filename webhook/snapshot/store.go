package snapshot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Store holds the snapshot. It implements verify.Ledger and verify.Stored. Make one with New.
type Store struct {
	cache  cache.Cache
	mapper meta.RESTMapper
	log    *slog.Logger
	// remember is told what the ledger holds of policies, whenever that changes.
	remember func(ledger.Policy)

	profiles table[*verify.ProfileFacts]
	hosts    table[*object.Host]
	classes  table[*object.NodeClass]
	runs     table[*object.HostRun]
	nodes    table[string]
	// statements are few, since roots sign each, and admission lets no others in.
	statements table[*object.HostStatement]
	ledger     table[*v1alpha1.LedgerSpec]
	slots      slotTable

	kinds []*kind
}

// New returns a Store that has read nothing. The cache's DefaultTransform must be Slim.
func New(c cache.Cache, mapper meta.RESTMapper, remember func(ledger.Policy), log *slog.Logger) *Store {
	s := &Store{cache: c, mapper: mapper, log: log, remember: remember}
	s.runs.group = func(r *object.HostRun) string { return r.NodeName }
	s.kinds = []*kind{
		newKind(schema.GroupKind{Group: object.GroupHostwarrant, Kind: kindLedger}, "v1alpha1", s.putLedger, s.dropLedger, s.ledger.size),
		into(&s.profiles, object.GroupKPSSH, object.KindJoinProfile, "v1beta1"),
		into(&s.hosts, object.GroupKPSSH, object.KindHost, "v1beta1"),
		into(&s.classes, object.GroupKPSSH, object.KindNodeClass, "v1beta1"),
		into(&s.runs, object.GroupHostwarrant, object.KindHostRun, "v1alpha1"),
		into(&s.statements, object.GroupHostwarrant, object.KindHostStatement, "v1alpha1"),
		into(&s.nodes, corev1.GroupName, "Node", "v1"),
	}
	return s
}

// into makes a kind that is kept in a table. What cannot be read is kept out of it.
func into[V any](t *table[V], group, name, version string) *kind {
	put := func(key string, value any) {
		if v, ok := value.(V); ok && !isNil(v) {
			t.set(key, v)
			return
		}
		t.drop(key)
	}
	return newKind(schema.GroupKind{Group: group, Kind: name}, version, put, t.drop, t.size)
}

func isNil(value any) bool {
	switch v := value.(type) {
	case *object.Host:
		return v == nil
	case *object.NodeClass:
		return v == nil
	case *object.HostRun:
		return v == nil
	case *object.HostStatement:
		return v == nil
	default:
		return value == nil
	}
}

func (s *Store) putLedger(key string, value any) {
	l, ok := value.(*v1alpha1.LedgerSpec)
	if !ok {
		return
	}
	if l != nil && l.Slots != nil {
		s.slots.set(key, l.Slots)
		return
	}
	s.ledger.set(key, l)
	if key == v1alpha1.LedgerPolicyName && l != nil && l.Policy != nil {
		s.remember(record.Policy(l.Policy))
	}
}

// dropLedger forgets marks, but nothing of policies: what was remembered once stays so.
func (s *Store) dropLedger(key string) {
	if key == v1alpha1.LedgerPolicyName {
		s.log.Warn("the Ledger of policies was deleted; what it said stays in force here")
		return
	}
	s.ledger.drop(key)
	s.slots.set(key, nil)
}

// NeedLeaderElection says that every replica has a snapshot.
func (s *Store) NeedLeaderElection() bool { return false }

// Start watches until ctx ends.
func (s *Store) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, k := range s.kinds {
		all.Go(func() { s.watch(ctx, k) })
	}
	all.Wait()
	return nil
}

// LedgerRead waits until the ledger has been read once, or found not to be served.
func (s *Store) LedgerRead(ctx context.Context) bool {
	select {
	case <-s.kinds[0].known:
		return true
	case <-ctx.Done():
		return false
	}
}

// Ready says why there is no snapshot yet, or nil.
func (s *Store) Ready() error {
	for _, k := range s.kinds {
		// check: SnapshotUnavailable: half a snapshot looks like a cluster that holds the other half no more
		if state, _ := k.read(); state == unread {
			return decision.Errorf(decision.SnapshotUnavailable, "the stored objects of kind %s have not been read yet", k.Kind).
				Try("try again in a few seconds; if it lasts, read the webhook's log")
		}
	}
	return nil
}

// For says why objects of a kind cannot be judged: where it is not known to be served, it was
// installed a moment ago, and others of it may be stored that we have not seen.
func (s *Store) For(name string) error {
	if err := s.Ready(); err != nil {
		return err
	}
	for _, k := range s.kinds {
		state, _ := k.read()
		// check: SnapshotUnavailable: an object of a kind that was installed a moment ago, judged as if it were the first
		if k.Kind == name && state == absent {
			k.look()
			return decision.Errorf(decision.SnapshotUnavailable, "the kind %s was not served when we looked last", k.Kind).
				Try("try again in a few seconds")
		}
	}
	return nil
}

// Profile is what is known of a stored SSHJoinProfile.
func (s *Store) Profile(name string) *verify.ProfileFacts {
	facts, _ := s.profiles.get(name)
	return facts
}

// Host is a stored SSHHost.
func (s *Store) Host(namespace, name string) *object.Host {
	h, _ := s.hosts.get(namespace + "/" + name)
	return h
}

// Hosts are all SSHHosts that can be read.
func (s *Store) Hosts() []*object.Host { return s.hosts.all() }

// NodeClasses are all SSHNodeClasses that can be read.
func (s *Store) NodeClasses() []*object.NodeClass { return s.classes.all() }

// HostRuns are all HostRuns that can be read.
func (s *Store) HostRuns() []*object.HostRun { return s.runs.all() }

// HostRunsFor are the HostRuns that name the node, and can be read.
func (s *Store) HostRunsFor(node string) []*object.HostRun { return s.runs.of(node) }

// HostStatements are all HostStatements that can be read.
func (s *Store) HostStatements() []*object.HostStatement { return s.statements.all() }

// NodeProviderID is spec.providerID of a Node.
func (s *Store) NodeProviderID(name string) (string, bool) { return s.nodes.get(name) }

// Kinds tells what is watched, for people.
func (s *Store) Kinds() map[string]KindReport {
	all := map[string]KindReport{}
	for _, k := range s.kinds {
		state, version := k.read()
		all[k.Kind] = KindReport{State: string(state), Version: version, Objects: k.size()}
	}
	return all
}

// KindReport describes one kind of the snapshot.
type KindReport struct {
	// State is "unread", "absent" (the cluster does not serve the kind) or "watched".
	State   string `json:"state"`
	Version string `json:"version,omitempty"`
	Objects int    `json:"objects"`
}

// lookEvery is how often a kind that the cluster does not serve is looked for again. Discovery of one
// group version is one request.
const lookEvery = 2 * time.Second

var (
	_ verify.Ledger = (*Store)(nil)
	_ verify.Stored = (*Store)(nil)
)
