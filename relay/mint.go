package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/relay/minter"
)

// serveMinter runs the minter until ctx ends.
func serveMinter(ctx context.Context, o options, stderr io.Writer) error {
	p, err := begin(ctx, o, "hostwarrant-minter", stderr)
	if err != nil {
		return err
	}
	m := p.manager
	counts, err := minter.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	tokens := &minter.Minter{
		Client: m.GetClient(), Objects: judge.Objects{Reader: m.GetAPIReader(), Runs: m.GetClient()}, Policy: p.policy,
		Book: minter.NewBook(), Metrics: counts, Events: m.GetEventRecorder("hostwarrant-minter"),
		Now: time.Now, Namespaces: o.namespaces,
	}
	if err := tokens.Setup(m); err != nil {
		return fmt.Errorf("setting up the controller: %v", err)
	}
	if err := addApprover(m, o, p.anchor.ClusterID, tokens); err != nil {
		return err
	}
	return p.run(ctx, o, "proof", o.proof)
}
