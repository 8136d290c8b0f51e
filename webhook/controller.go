package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/manifests"
	"github.com/hostwarrant/hostwarrant/webhook/bundles"
	"github.com/hostwarrant/hostwarrant/webhook/canary"
	"github.com/hostwarrant/hostwarrant/webhook/ledger"
	"github.com/hostwarrant/hostwarrant/webhook/metrics"
	"github.com/hostwarrant/hostwarrant/webhook/notice"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
	"github.com/hostwarrant/hostwarrant/webhook/refresh"
	"github.com/hostwarrant/hostwarrant/webhook/rejudge"
	"github.com/hostwarrant/hostwarrant/webhook/report"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// controller puts the parts of "control" together.
type controller struct {
	manager   manager.Manager
	anchor    policy.Anchor
	namespace string
	options   *controlOptions
	log       *slog.Logger
}

// parts are what runs beside the reconcilers: what follows policy and objects runs in every replica,
// what writes runs in the leader alone.
func (c *controller) parts() ([]manager.Runnable, error) {
	m := c.manager
	counters, err := metrics.New(crmetrics.Registry, time.Now)
	if err != nil {
		return nil, err
	}
	t := trusted{policies: policy.New(c.anchor, counters, c.log)}
	t.stored = snapshot.New(m.GetCache(), m.GetRESTMapper(), t.policies.Remember, c.log)
	feed := &policy.Feed{
		Holder: t.policies, Cache: m.GetCache(), Log: c.log,
		Identify: clusterUID(m.GetAPIReader()), LedgerRead: t.stored.LedgerRead,
	}
	events := &notice.Events{Client: m.GetClient(), Reader: m.GetAPIReader(), Log: c.log, Now: time.Now}
	conditions := &notice.Conditions{Client: m.GetClient(), Reader: m.GetAPIReader(), Now: time.Now}
	tell := func(ctx context.Context, reason, message string) {
		c.log.Error(message, "reason", reason)
		events.Warning(ctx, rejudge.PolicyReference(), reason, message)
	}
	keeper := ledger.New(m.GetClient(), m.GetAPIReader(), c.anchor, tell, c.log)
	scanner, err := c.scanner(t, keeper, events, conditions)
	if err != nil {
		return nil, err
	}
	composites, err := c.composites(t, keeper, events, conditions)
	if err != nil {
		return nil, err
	}
	watch := &rejudge.Watch{Cache: m.GetCache(), Mapper: m.GetRESTMapper(), Scanner: scanner, Log: c.log}
	monitor, err := c.monitor(events, conditions)
	if err != nil {
		return nil, err
	}
	health := newHealthServer(c.options.healthAddress, func(*http.Request) error { return nil })
	health.mux.HandleFunc("GET /policyz", t.policies.Serve(func(r *policy.Report) { r.Bundles = composites.Counts() }))
	return []manager.Runnable{t.stored, feed, scanner, watch, monitor, composites, health}, nil
}

// scanner keeps the ledger and judges stored objects again.
func (c *controller) scanner(t trusted, keeper *ledger.Keeper, events *notice.Events, conditions *notice.Conditions) (*rejudge.Scanner, error) {
	m := c.manager
	source, err := rejudge.NewAPI(m.GetConfig(), m.GetHTTPClient(), m.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	counters, err := rejudge.NewMetrics(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	lists, err := refresh.NewCounts(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	return (&rejudge.Scanner{
		Source: source, Trust: judging{t, m.GetClient()}, Ledger: keeper, Events: events, Conditions: conditions,
		Report:  &report.Writer{Client: m.GetClient(), Reader: m.GetAPIReader(), Mapper: m.GetRESTMapper()},
		Hosts:   &refresh.Refresher{Client: m.GetClient(), Rendered: keeper.Rendered, Warning: events.Warning, Counts: lists},
		Metrics: counters, Log: c.log, Now: time.Now, Interval: c.options.rejudgeInterval,
	}).Init(), nil
}

// Requests a second for fragments, and in a burst: after a restart each of ten thousand is read once.
const (
	fragmentQPS   = 400
	fragmentBurst = 800
)

// composites keeps one profile for each bundle of signed fragments.
func (c *controller) composites(t trusted, keeper *ledger.Keeper, events *notice.Events, conditions *notice.Conditions) (*bundles.Controller, error) {
	m := c.manager
	config := rest.CopyConfig(m.GetConfig())
	config.QPS, config.Burst = fragmentQPS, fragmentBurst
	source, err := rejudge.NewAPI(config, m.GetHTTPClient(), m.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	counters, err := bundles.NewMetrics(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	return (&bundles.Controller{
		Cache: m.GetCache(), Client: m.GetClient(), Reader: m.GetAPIReader(), Mapper: m.GetRESTMapper(),
		Get: source, Judge: judgeFragment, Trust: judging{t, m.GetClient()}, Ledger: keeper,
		Events: events, Conditions: conditions, Metrics: counters, Log: c.log, Now: time.Now, Interval: c.options.rejudgeInterval,
	}).Init(), nil
}

// judgeFragment is the engine's answer about one object.
func judgeFragment(s verify.Snapshot, o *fragment.Object) (*fragment.Fragment, *decision.Error) {
	f, d := verify.Fragment(s, o)
	if d.Allowed() {
		return f, nil
	}
	return f, &decision.Error{Reason: d.Reason, Where: d.Where, What: d.What, Hint: d.Hint}
}

// monitor shows that admission is in the path.
func (c *controller) monitor(events *notice.Events, conditions *notice.Conditions) (*canary.Monitor, error) {
	m := c.manager
	texts, err := manifests.Guards()
	if err != nil {
		return nil, err
	}
	shipped, err := drift.Parse(texts, c.namespace)
	if err != nil {
		return nil, err
	}
	asked, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	counters, err := canary.NewMetrics(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	prober := &canary.Prober{
		Config: m.GetConfig(), Client: m.GetClient(), Reader: m.GetAPIReader(), Discovery: asked, Namespace: c.namespace, Now: time.Now,
	}
	return &canary.Monitor{
		Probe: prober.Probe, Drift: (&canary.Guards{Reader: m.GetAPIReader(), Shipped: shipped}).Check,
		Set: conditions.Set, Warning: events.Warning, Normal: events.Normal,
		Metrics: counters, Log: c.log, Interval: c.options.canaryInterval,
	}, nil
}

// judging is what stored objects are judged by.
type judging struct {
	trusted
	client client.Client
}

// Snapshot is what is trusted at now, once everything has been read.
func (j judging) Snapshot(now time.Time) (verify.Snapshot, error) {
	s, err := j.policies.Snapshot(now)
	s.Stored = j.stored
	if err != nil {
		return s, err
	}
	return s, j.stored.Ready()
}

// Chain is that of the stored trust policy: none where there is no such object.
func (j judging) Chain(ctx context.Context) ([]statement.Signed, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(object.KindTrustPolicy))
	err := j.client.Get(ctx, client.ObjectKey{Name: v1alpha1.TrustPolicyName}, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the stored trust policy: %w", err)
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if p, err := object.ParseTrustPolicy(raw); err == nil {
		return p.Signed().Chain, nil
	}
	return nil, nil // it cannot be read: what is in force came from elsewhere, or from before
}
