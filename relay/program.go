package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/relay/fresh"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

// policyEvery is how often a replica that does not lead looks at the policy. The
// leader looks before each run.
const policyEvery = 30 * time.Second

// program is what relay and minter begin with.
type program struct {
	log     logr.Logger
	anchor  inforce.Anchor
	manager ctrl.Manager
	stored  client.Reader // the API server, and no cache
	policy  *judge.PolicySource
}

// begin reads the anchor and makes a manager that runs while it holds the lease.
func begin(ctx context.Context, o options, lease string, stderr io.Writer) (*program, error) {
	logger := zap.New(zap.WriteTo(stderr), zap.UseDevMode(o.verbose))
	log.SetLogger(logger)
	anchor, err := readAnchor(o.anchor)
	if err != nil {
		return nil, err
	}
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	m, err := newManager(config, o, lease)
	if err != nil {
		return nil, err
	}
	if err := judge.IndexRuns(ctx, m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	trusted, err := judge.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %v", err)
	}
	stored := fresh.NewObjects(m.GetAPIReader())
	return &program{logger, anchor, m, stored, judge.NewPolicySource(stored, anchor, trusted, logger.WithName("policy"))}, nil
}

// run runs what was added to the manager until ctx ends. details are logged at start.
func (p *program) run(ctx context.Context, o options, details ...any) error {
	if err := addChecks(p.manager, p.policy); err != nil {
		return err
	}
	p.log.Info("starting", append(details, "clusterID", p.anchor.ClusterID, "anchor", p.anchor.Digest, "namespaces", o.namespaces)...)
	return p.manager.Start(ctx)
}

func newManager(config *rest.Config, o options, lease string) (ctrl.Manager, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("building the scheme: %v", err)
		}
	}
	namespaces := map[string]cache.Config{}
	for _, ns := range o.namespaces {
		namespaces[ns] = cache.Config{}
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        types,
		Cache:                         cache.Options{DefaultNamespaces: namespaces, DefaultTransform: lean},
		Metrics:                       server.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.health,
		LeaderElection:                o.leaderElection,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager: %v", err)
	}
	return m, nil
}

// lean drops what nobody reads of a HostRun before the cache keeps it: annotations may have 256 KiB, and who
// creates HostRuns writes them. A write of its status leaves them where they are stored.
func lean(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil { // else a tombstone
		m.SetAnnotations(nil)
		m.SetManagedFields(nil)
	}
	return o, nil
}

// restConfig is the named kubeconfig, or what KUBECONFIG or the pod gives.
func restConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %v; give --kubeconfig or KUBECONFIG", err)
	}
	// The client's own limit, 5 requests a second, would let a thousand runs take an hour. How many hosts
	// are served at once bounds what is asked; the API server's priority and fairness does the rest.
	config.QPS = -1
	return config, nil
}

// addChecks: alive at once, ready once a verified policy is in force.
func addChecks(m ctrl.Manager, policy *judge.PolicySource) error {
	ready := func(*http.Request) error { return policy.Ready(time.Now()) }
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /healthz: %v", err)
	}
	if err := m.AddReadyzCheck("policy", ready); err != nil {
		return fmt.Errorf("adding /readyz: %v", err)
	}
	if err := m.Add(everyReplica{func(ctx context.Context) error { return policy.Keep(ctx, policyEvery) }}); err != nil {
		return fmt.Errorf("adding the policy: %v", err)
	}
	return nil
}

// everyReplica runs beside the controller on replicas that do not lead as well.
type everyReplica struct{ start func(context.Context) error }

func (e everyReplica) Start(ctx context.Context) error { return e.start(ctx) }

// NeedLeaderElection is false: a replica that takes over must be ready.
func (e everyReplica) NeedLeaderElection() bool { return false }

var _ manager.LeaderElectionRunnable = everyReplica{}
