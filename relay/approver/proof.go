package approver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/relay/hostkeys"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
)

// proved asks the host, by way of the relay, and judges its answer.
func (a *Approver) proved(ctx context.Context, c *candidate) (*verdict, error) {
	if a.WithoutProof {
		return nil, nil
	}
	host, err := hostkeys.Of(ctx, a.Objects.Reader, c.snapshot.Policy, c.host)
	if e, ok := errors.AsType[*decision.Error](err); ok {
		return new(unproved("%v", e)), nil
	}
	if err != nil {
		return nil, err
	}
	// check: ProofFailed: no proof counts but by a key that the relay cannot choose
	if len(host.Keys)+len(host.Authorities) == 0 {
		return new(unproved("no key is known of the host %s/%s: name a hostCA in the policy, or list it in ConfigMap %s/%s", c.host.Namespace, c.host.Name, hostkeys.Namespace, hostkeys.ConfigMap)), nil
	}
	p := c.run.Status.Proof
	if p == nil || p.Nonce == "" {
		return a.ask(ctx, c)
	}
	if token.Unproved(c.run) {
		return a.wait(c), nil
	}
	return a.judgeProof(c, host, p), nil
}

func unproved(format string, args ...any) verdict {
	return denied(string(decision.ProofFailed), format, args...)
}

// ask writes the nonce, to which the relay brings the host's answer.
func (a *Approver) ask(ctx context.Context, c *candidate) (*verdict, error) {
	var nonce [32]byte
	if _, err := io.ReadFull(a.Rand, nonce[:]); err != nil {
		return nil, fmt.Errorf("making a nonce: %v", err)
	}
	asked := c.run.DeepCopy()
	asked.Status.Proof = &v1alpha1.HostRunProof{Nonce: hex.EncodeToString(nonce[:])}
	if err := a.Client.Status().Patch(ctx, asked, client.MergeFromWithOptions(c.run, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("asking for a proof: %w", err)
	}
	return a.wait(c), nil
}

// wait leaves the request until there is an answer, or no time for one.
func (a *Approver) wait(c *candidate) *verdict {
	return &verdict{what: leave, again: max(c.proofEnd().Sub(a.Now()), time.Second)}
}

// judgeProof gives nil where the host proved the request to be its kubelet's.
func (a *Approver) judgeProof(c *candidate, host proof.Host, p *v1alpha1.HostRunProof) *verdict {
	asked := proof.Question{Cluster: a.ClusterID, RunUID: string(c.run.UID), Nonce: p.Nonce}
	facts, err := proof.Verify([]byte(p.Text), []byte(p.Signature), host, asked, a.Now())
	// check: ProofFailed: whatever the relay writes in place of what the host signed
	if err != nil {
		return new(unproved("%s", strings.TrimPrefix(err.Error(), string(decision.ProofFailed)+": ")))
	}
	// check: ProofFailed: the token was used by another machine than the one that it was given to
	if key := sshsig.Fingerprint(c.key); facts.KubeletKey != key {
		return new(unproved("the request is for the key %s, but %s", key, pending(facts.KubeletKey)))
	}
	return nil
}

// pending says with which key the host's kubelet waits.
func pending(key string) string {
	if key == "" {
		return "kubelet on the host holds no pending key: it has not asked, or its shim.conf has no kubelet-key="
	}
	return "the host's kubelet waits with " + key
}

// vouched asks the external verifier, last.
func (a *Approver) vouched(ctx context.Context, c *candidate) (*verdict, error) {
	if a.Verifier == nil {
		return nil, nil
	}
	q := verifier.Question{
		UID: string(c.csr.UID), Cluster: a.ClusterID, Namespace: c.run.Namespace, Run: c.run.Name, RunUID: string(c.run.UID),
		Host: c.host.Name, Address: c.host.Address, Node: c.run.Spec.NodeName, Key: sshsig.Fingerprint(c.key), CertificateRequest: string(c.csr.Spec.Request),
	}
	if p := c.run.Status.Proof; p != nil && !a.WithoutProof {
		q.Proof, q.ProofSignature = p.Text, p.Signature
	}
	err := a.Verifier.Ask(ctx, q)
	// check: CSRMismatch: whoever is asked for more than we know, and says no, or nothing
	if err != nil {
		return new(denied(reasonVerifierRefused, "%v", err)), nil
	}
	return nil, nil
}
