package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/manifests"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/guards"
	"github.com/hostwarrant/hostwarrant/relay/hostrun"
	"github.com/hostwarrant/hostwarrant/relay/prove"
	"github.com/hostwarrant/hostwarrant/relay/statements"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

// serve runs the relay until ctx ends.
func serve(ctx context.Context, o options, stderr io.Writer) error {
	p, err := begin(ctx, o, "hostwarrant-relay", stderr)
	if err != nil {
		return err
	}
	m := p.manager
	ca, err := ownCA(m.GetConfig())
	if err != nil {
		return err
	}
	line := hostrun.NewLine(o.concurrent)
	counts, err := hostrun.NewMetrics(metrics.Registry, line)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	r := &hostrun.Reconciler{
		Client: m.GetClient(), Reader: p.stored, Policy: p.policy, Courier: hostrun.SSH{},
		ClusterID: p.anchor.ClusterID, ClusterCA: ca, Limits: transport.DefaultLimits(),
		Metrics: counts, Now: time.Now, Rand: rand.Reader, Events: m.GetEventRecorder("hostwarrant-relay"),
	}
	if err := addStatements(m, r, line); err != nil {
		return err
	}
	if err := r.Setup(m, line, o.concurrent); err != nil {
		return err
	}
	if err := (hostrun.Timekeeper{Reconciler: r}).Setup(m); err != nil {
		return err
	}
	if err := prove.New(m, r).Setup(m); err != nil {
		return err
	}
	if err := addGuards(m, o.leaseNamespace, p.log.WithName("guards")); err != nil {
		return err
	}
	return p.run(ctx, o)
}

// addStatements tells hosts what the roots say, before runs and beside them.
func addStatements(m ctrl.Manager, r *hostrun.Reconciler, line *hostrun.Line) error {
	counts, err := statements.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	c := statements.New(statements.Courier{
		Client: m.GetClient(), Reader: r.Reader, Policy: r.Policy, Turns: line, Call: delivery.Call,
		Source:    &statements.Source{Reader: r.Reader, Policy: r.Policy, Now: time.Now},
		ClusterID: r.ClusterID, Limits: r.Limits, Metrics: counts, Now: time.Now,
	})
	if err := c.Setup(m); err != nil {
		return fmt.Errorf("setting up the controller of statements: %v", err)
	}
	r.Statements = c
	return nil
}

// addGuards looks whether what guards the cluster is as it was shipped.
func addGuards(m ctrl.Manager, namespace string, logger logr.Logger) error {
	texts, err := manifests.Guards()
	if err != nil {
		return err
	}
	shipped, err := drift.Parse(texts, namespace)
	if err != nil {
		return err
	}
	counts, err := guards.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	if err := m.Add(&guards.Watcher{Reader: m.GetAPIReader(), Shipped: shipped, Metrics: counts, Log: logger}); err != nil {
		return fmt.Errorf("adding the look at the guards: %v", err)
	}
	return nil
}
