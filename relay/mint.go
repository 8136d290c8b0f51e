package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/minter"
)

// serveMinter runs the minter until ctx ends.
func serveMinter(ctx context.Context, o options, stderr io.Writer) error {
	logger := zap.New(zap.WriteTo(stderr), zap.UseDevMode(o.verbose))
	log.SetLogger(logger)
	anchor, err := readAnchor(o.anchor)
	if err != nil {
		return err
	}
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	m, err := newManager(config, o, "hostwarrant-minter")
	if err != nil {
		return err
	}
	if err := judge.IndexRuns(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	trusted, err := judge.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	counts, err := minter.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	policy := judge.NewPolicySource(m.GetAPIReader(), anchor, trusted, logger.WithName("policy"))
	tokens := &minter.Minter{
		Client: m.GetClient(), Objects: judge.Objects{Reader: m.GetAPIReader(), Runs: m.GetClient()}, Policy: policy,
		Book: minter.NewBook(), Metrics: counts, Events: m.GetEventRecorder("hostwarrant-minter"),
		Now: time.Now, Namespaces: o.namespaces,
	}
	if err := tokens.Setup(m); err != nil {
		return fmt.Errorf("setting up the controller: %v", err)
	}
	if err := addApprover(m, o, anchor.ClusterID, tokens); err != nil {
		return err
	}
	if err := addChecks(m, policy); err != nil {
		return err
	}
	logger.Info("starting", "proof", o.proof, "clusterID", anchor.ClusterID, "anchor", anchor.Digest, "namespaces", o.namespaces)
	return m.Start(ctx)
}
