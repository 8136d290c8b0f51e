package trustpolicy

import (
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Namespace is the SSHSIG namespace of trust policies.
const Namespace = "hostwarrant-policy"

// maxSignatures bounds the verifications of one policy.
const maxSignatures = 16

// MaxStep is how far one policy may raise the version: a slip or a stolen
// threshold must not use up the numbers (TUF's fast-forward attack).
const MaxStep = 1000

// Signed is a document with its detached root signatures.
type Signed struct {
	Document   []byte
	Signatures []string
}

// Verify returns the policy that s holds if enough roots signed it, it is for
// the cluster and it is in force at now. The error carries a Policy… Reason, or
// the one of a signature that is bad in itself.
func Verify(s Signed, roots *Roots, clusterID string, now time.Time) (*Policy, error) {
	p, err := Authenticate(s, roots)
	if err != nil {
		return nil, err
	}
	if err := p.inForce(clusterID, now); err != nil {
		return nil, err
	}
	_, named := p.Clusters[clusterID]
	// check: PolicyExpired: a policy for any cluster that was let in for a trial, and would enforce here after it
	if !named && clusterID != AnyCluster && p.warnUntil.Before(p.Expires) {
		p.Expires = p.warnUntil
	}
	return p, nil
}

// Authenticate returns the policy that s holds if enough roots signed it, though
// it may be for another cluster, or not in force. Such a policy grants nothing:
// it only says which version the roots had reached.
func Authenticate(s Signed, roots *Roots) (*Policy, error) {
	if err := checkSignatures(s, roots); err != nil {
		return nil, err
	}
	d, err := decode(s.Document)
	if err != nil {
		return nil, err
	}
	p, err := d.policy()
	if err != nil {
		return nil, err
	}
	// check: PolicyUnsigned: a policy of an older root generation must not come back with it
	if p.RootVersion != roots.Version {
		return nil, decision.Errorf(decision.PolicyUnsigned, "rootVersion is %d, but the roots here have version %d", p.RootVersion, roots.Version)
	}
	p.Digest = Digest(s.Document)
	return p, nil
}

// checkSignatures counts the distinct root keys that signed the document.
func checkSignatures(s Signed, roots *Roots) error {
	// check: PolicyUnavailable: without roots nothing can be vouched for
	if roots == nil || roots.Threshold < 1 || len(roots.Keys) < roots.Threshold {
		return decision.Errorf(decision.PolicyUnavailable, "there are no root keys to verify the policy with")
	}
	// check: PolicyMalformed: work before verification must be bounded
	if len(s.Document) > MaxDocument || len(s.Signatures) > maxSignatures {
		return malformed("the policy has %d bytes and %d signatures, more than %d and %d", len(s.Document), len(s.Signatures), MaxDocument, maxSignatures)
	}
	var signed []ssh.PublicKey
	for i, armored := range s.Signatures {
		key, err := rootSignature(s.Document, armored, roots)
		if err != nil {
			return decision.From(err).At(fmt.Sprintf("spec.signatures[%d]", i))
		}
		if key == nil {
			continue
		}
		// check: PolicyUnsigned: one key that signs twice is still one key
		if holds(signed, key) {
			continue
		}
		signed = append(signed, key)
	}
	// check: PolicyUnsigned: whoever can write the object must not be able to say who may vouch
	if len(signed) < roots.Threshold {
		return decision.Errorf(decision.PolicyUnsigned, "%d of %d needed root keys signed this policy", len(signed), roots.Threshold).
			Try("hostwarrant policy sign FILE --key ROOT")
	}
	return nil
}

// rootSignature returns the root key that signed, or nil for a key that is no
// root (a root of another link of the chain).
func rootSignature(document []byte, armored string, roots *Roots) (ssh.PublicKey, error) {
	signature, err := sshsig.Parse([]byte(armored))
	if err != nil {
		return nil, err
	}
	key := signature.PublicKey()
	if !holds(roots.Keys, key) {
		return nil, nil
	}
	err = signature.Verify(Namespace, document)
	// check: SignatureInvalid,NewlineChanged: only the very bytes that the root signed
	if err != nil {
		return nil, mismatch(signature, document, err)
	}
	return key, nil
}

// mismatch words what became of the bytes that the root's signature does not match.
func mismatch(signature *sshsig.Signature, document []byte, err error) error {
	change := script.NewlineChange(document, func(b []byte) bool { return signature.Verify(Namespace, b) == nil })
	if change == "" {
		return decision.From(err).Try("hostwarrant policy sign FILE --key ROOT")
	}
	return decision.Errorf(decision.NewlineChanged, "%s after %s signed", change, sshsig.Fingerprint(signature.PublicKey())).
		Try("write spec.document as a block scalar that keeps its final newline (|)")
}

// inForce checks what depends on the reader: its cluster and its clock.
func (p *Policy) inForce(clusterID string, now time.Time) error {
	if err := p.forCluster(clusterID, now); err != nil {
		return err
	}
	// check: NotYetValid: a date far ahead would outlive every later policy's expiry
	if p.Issued.After(now.Add(maxSkew)) {
		return decision.Errorf(decision.NotYetValid, "the policy is issued at %s, more than a day from now", p.Issued.Format(time.RFC3339)).
			Try("check the clock here and where it was signed")
	}
	// check: PolicyExpired: withheld updates are bounded by expiry
	if p.Expired(now) {
		return decision.Errorf(decision.PolicyExpired, "the policy expired at %s", p.Expires.Format(time.RFC3339)).
			Try("sign one with a higher version and a later expires")
	}
	return nil
}

// maxSkew is how far ahead of the clock a signed time may be (docs/spec/shim.md has the same day).
const maxSkew = 24 * time.Hour

func (p *Policy) forCluster(id string, now time.Time) error {
	_, named := p.Clusters[id]
	_, anywhere := p.Clusters[AnyCluster]
	// check: PolicyWrongCluster: a laxer cluster's policy must not be replayable here
	if id == "" || !named && !anywhere {
		return decision.Errorf(decision.PolicyWrongCluster, "the policy is not for cluster %.80q", id).
			Try("add the cluster to clusters and sign again, or apply it where it belongs")
	}
	// check: PolicyWrongCluster: in a cluster that has a name, "any" would let every other cluster's policy in
	if !named && p.Mode(now) == Enforce {
		return decision.Errorf(decision.PolicyWrongCluster, "the policy is for any cluster, but this one is %.80q and enforces", id).
			Try("name the cluster in clusters")
	}
	return nil
}

// Supersedes refuses a policy that may not take the place of the one in force.
// A nil current is the first start. The error carries PolicyRollback,
// PolicyEquivocation or SerialJump.
func (p *Policy) Supersedes(current *Policy) error {
	if current == nil {
		return nil
	}
	const next = "give it the next version and sign it again"
	// check: PolicyRollback: an old policy may still name a signer that was removed
	if p.Version < current.Version {
		return decision.Errorf(decision.PolicyRollback, "version %d is below %d, which is in force", p.Version, current.Version).Try(next)
	}
	// check: PolicyEquivocation: two policies under one version could be shown to different readers
	if p.Version == current.Version && p.Digest != current.Digest {
		return decision.Errorf(decision.PolicyEquivocation, "version %d is in force with other bytes (%.19s, this is %.19s)", p.Version, current.Digest, p.Digest).Try(next)
	}
	// check: SerialJump: a slip must not use up the numbers
	if p.Version > current.Version+MaxStep {
		return decision.Errorf(decision.SerialJump, "version %d is more than %d above %d", p.Version, MaxStep, current.Version).Try(next)
	}
	return nil
}
