package main

import (
	"crypto/ecdsa"
	"fmt"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// onlyRoot is the root key of kubescape's format, which has one.
func onlyRoot(a verify.Anchor) (*ecdsa.PublicKey, error) {
	if len(a.Roots.Keys) != 1 {
		return nil, fmt.Errorf("holds %d keys; this format has one root", len(a.Roots.Keys))
	}
	return ecdsaKey(a.Roots.Keys[0])
}

func (c *cli) warnOfDemoRoot(a verify.Anchor) {
	if isDemoKey(a.Roots.Keys[0]) {
		c.say("warning", "the file is signed by kubescape's published demo root: everybody could have signed it")
	}
}

// referenceSnapshot judges by kubescape's trust-policy.signed.json as it stands: fragments by its classes;
// it vouches for nothing else.
func (c *cli) referenceSnapshot(path string, data []byte, a verify.Anchor) (verify.Snapshot, error) {
	p, err := c.referencePolicy(data, a)
	if err != nil {
		return verify.Snapshot{}, notInForce(path, err)
	}
	return verify.Snapshot{Policy: p, ClusterID: a.ClusterID, Now: c.now()}, nil
}

// mayEnforce refuses a policy that enforces what everybody could have signed.
func mayEnforce(mode string, a verify.Anchor) error {
	// check: DemoRoot: everybody has the private half of the published demo key
	if mode == policyfile.Enforce && isDemoKey(a.Roots.Keys[0]) {
		return decision.Errorf(decision.DemoRoot, "it enforces under the published demo root of kubescape, whose private half everybody has").
			Try("sign it with a root key of your own: hostwarrant policy export")
	}
	return nil
}

func (c *cli) referencePolicy(data []byte, a verify.Anchor) (*trustpolicy.Policy, error) {
	f, err := policyfile.Parse(data)
	if err != nil {
		return nil, err
	}
	root, err := onlyRoot(a)
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	if err := f.Verify(root); err != nil {
		return nil, err
	}
	if err := mayEnforce(f.Policy.Mode, a); err != nil {
		return nil, err
	}
	c.warnOfDemoRoot(a)
	if f.Policy.Mode != policyfile.Enforce {
		c.say("note", "the policy is in mode alert: kubescape's agents report what is refused here, and do not refuse it")
	}
	now := c.now().UTC().Truncate(time.Second)
	// The other format lets rules be switched off, and its policies do not end.
	return trustpolicy.ReadUnverified(documentOf(f.Policy, documentTerms{
		version: max(f.Policy.PolicyVersion, 1), clusters: "{any: {}}", issued: now, expires: now.AddDate(0, 0, 1), mode: trustpolicy.Enforce, mayDisable: true,
	}))
}
