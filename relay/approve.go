package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/hostwarrant/hostwarrant/relay/approver"
	"github.com/hostwarrant/hostwarrant/relay/minter"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
)

// addApprover lets the minter's process decide about the requests that are made with its tokens.
func addApprover(m ctrl.Manager, o options, clusterID string, tokens *minter.Minter) error {
	outside, err := o.verifier()
	if err != nil {
		return err
	}
	counts, err := approver.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %v", err)
	}
	a := &approver.Approver{
		Client: m.GetClient(), Objects: tokens.Objects, Policy: tokens.Policy, Tokens: book{tokens}, Verifier: outside, ClusterID: clusterID,
		Metrics: counts, Events: tokens.Events, Now: time.Now, Rand: rand.Reader, WithoutProof: o.proof == proofOff,
	}
	if err := a.Setup(m); err != nil {
		return fmt.Errorf("setting up the approver: %v", err)
	}
	return nil
}

// verifier is the service of --verifier-url, nil where there is none.
func (o options) verifier() (*verifier.Verifier, error) {
	if o.verifierURL == "" {
		return nil, nil
	}
	var ca []byte
	if o.verifierCA != "" {
		var err error
		if ca, err = os.ReadFile(o.verifierCA); err != nil {
			return nil, fmt.Errorf("reading --verifier-ca: %v", err)
		}
	}
	v, err := verifier.New(o.verifierURL, ca)
	if err != nil {
		return nil, fmt.Errorf("--verifier-url: %v", err)
	}
	return v, nil
}

// book is the minter, as the approver asks it.
type book struct{ *minter.Minter }

// Holder says which run holds a token.
func (b book) Holder(ctx context.Context, id string) (approver.Token, bool, error) {
	e, held, err := b.Minter.Holder(ctx, id)
	return approver.Token{Run: e.Run, UID: e.UID, Minted: e.Expires.Add(-token.Life), Expires: e.Expires}, held, err
}
