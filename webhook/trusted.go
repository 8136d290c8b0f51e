package main

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// trusted is all that decisions are made by: the policy in force and what the cluster holds.
type trusted struct {
	policies *policy.Holder
	stored   *snapshot.Store
	// controller is the account that writes composites.
	controller string
}

// controllerAccount is the account of the controller of an installation.
func controllerAccount(namespace string) string {
	return "system:serviceaccount:" + namespace + ":hostwarrant-controller"
}

// Snapshot is what objects of a kind are judged by now.
func (t trusted) Snapshot(kind string, now time.Time) (verify.Snapshot, error) {
	s, err := t.policies.Snapshot(now)
	s.Ledger, s.Stored, s.Controller = t.stored, t.stored, t.controller
	if err != nil || kind == object.KindTrustPolicy {
		return s, err
	}
	return s, t.stored.For(kind)
}

// Judge says what would become of a policy.
func (t trusted) Judge(p *object.TrustPolicy, now time.Time) decision.Decision {
	return t.policies.Judge(p, now)
}

// Ready says why nothing but refusals can be decided, or nil.
func (t trusted) Ready(now time.Time) error {
	if err := t.policies.Ready(now); err != nil {
		return err
	}
	return t.stored.Ready()
}
