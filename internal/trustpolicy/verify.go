package trustpolicy

import (
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// Namespace is the SSHSIG namespace of trust policies.
const Namespace = "hostwarrant-policy"

// MaxStep is how far one policy may raise the version: a slip or a stolen
// threshold must not use up the numbers (TUF's fast-forward attack).
const MaxStep = 1000

// Signed is a document with its detached root signatures, and the links that lead
// from the anchor's roots to those that signed.
type Signed struct {
	Document   []byte
	Signatures []string
	Chain      []statement.Signed
}

// Verify returns the policy that s holds if enough roots signed it, it is for
// the cluster and it is in force at now. The error carries a Policy… Reason, or
// the one of a signature that is bad in itself.
func Verify(s Signed, anchor *Roots, clusterID string, now time.Time) (*Policy, error) {
	p, err := Authenticate(s, anchor)
	if err != nil {
		return nil, err
	}
	if err := checkLinks(p.links, clusterID, now); err != nil {
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
func Authenticate(s Signed, anchor *Roots) (*Policy, error) {
	// check: PolicyUnavailable: without roots nothing can be vouched for
	if anchor == nil || anchor.Threshold < 1 || len(anchor.Keys) < anchor.Threshold {
		return nil, decision.Errorf(decision.PolicyUnavailable, "there are no root keys to verify the policy with")
	}
	generations, links, err := walk(s.Chain, anchor)
	if err != nil {
		return nil, err
	}
	roots := generations[len(generations)-1]
	if err := checkSignatures(s, roots); err != nil {
		return nil, err
	}
	p, err := ReadUnverified(s.Document)
	if err != nil {
		return nil, err
	}
	// check: PolicyUnsigned: a policy of an older root generation must not come back with it
	if p.RootVersion != roots.Version {
		return nil, decision.Errorf(decision.PolicyUnsigned, "rootVersion is %d, but the roots here have version %d", p.RootVersion, roots.Version).
			Try("set rootVersion, then: hostwarrant policy sign -i FILE --key ROOT")
	}
	p.generations, p.links = generations, links
	return p, nil
}

// ReadUnverified parses a document that nobody verified: to show it, to compare it,
// to sign it. Nothing may be decided by what it returns.
func ReadUnverified(document []byte) (*Policy, error) {
	d, err := decode(document)
	if err != nil {
		return nil, err
	}
	p, err := d.policy()
	if err != nil {
		return nil, err
	}
	p.Digest = Digest(document)
	return p, nil
}

// checkSignatures counts the distinct root keys that signed the document.
func checkSignatures(s Signed, roots *Roots) error {
	// check: PolicyMalformed: work before verification must be bounded
	if len(s.Document) > MaxDocument || len(s.Signatures) > quorum.MaxSignatures {
		return malformed("the policy has %d bytes and %d signatures, more than %d and %d", len(s.Document), len(s.Signatures), MaxDocument, quorum.MaxSignatures)
	}
	signed, err := quorum.Signers(Namespace, s.Document, s.Signatures, roots.Keys)
	if err != nil {
		e := decision.From(err)
		return e.At("spec." + e.Where).Try(remedy(e.Reason))
	}
	// check: PolicyUnsigned: whoever can write the object must not be able to say who may vouch
	if len(signed) < roots.Threshold {
		return decision.Errorf(decision.PolicyUnsigned, "%d of %d needed root keys signed this policy", len(signed), roots.Threshold).
			Try("hostwarrant policy sign -i FILE --key ROOT")
	}
	return nil
}

func remedy(reason decision.Reason) string {
	if reason == decision.NewlineChanged {
		return "write spec.document as a block scalar that keeps its final newline (|)"
	}
	return "hostwarrant policy sign -i FILE --key ROOT"
}

// inForce checks what depends on the reader: its cluster and its clock.
func (p *Policy) inForce(clusterID string, now time.Time) error {
	if err := p.forCluster(clusterID, now); err != nil {
		return err
	}
	for _, key := range p.Roots().Keys {
		// check: DemoRoot: everybody has the private half of the published demo key
		if sshsig.Fingerprint(key) == demoRoot && p.Mode(now) == Enforce {
			return decision.Errorf(decision.DemoRoot, "the roots hold the published demo key of kubescape, whose private half everybody has").
				Try("make roots of your own: hostwarrant init DIR")
		}
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

// demoRoot is the fingerprint, as an SSH key, of the root key that kubescape's
// signed-fragments build compiles in. Its private half is published.
const demoRoot = "SHA256:14jv8Doht/K7u4uHZ8RCacVQMNqYuAASz4wDcYZYiCQ"

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
		return decision.Errorf(decision.PolicyWrongCluster, "the policy names no cluster %.80q, and in mode enforce it has to", id).
			At("clusters").Try("make one with hostwarrant init --cluster ID=URL, or name the cluster in clusters and sign again")
	}
	return nil
}

// Supersedes refuses a policy that may not take the place of the one in force.
// A nil current is the first start. The error carries PolicyRollback,
// PolicyEquivocation, RootFork or SerialJump.
func (p *Policy) Supersedes(current *Policy) error {
	if current == nil {
		return nil
	}
	const next = "give it the next version and sign it again"
	version, forked := p.forks(current)
	// check: RootFork: two generations of one version could be shown to different readers
	if forked {
		return decision.Errorf(decision.RootFork, "root version %d is in force with other keys", version).
			Try("find out who signed it: two documents of one root version must not exist")
	}
	// check: PolicyRollback: roots that were replaced must not come back
	if p.RootVersion < current.RootVersion {
		return decision.Errorf(decision.PolicyRollback, "root version %d is below %d, which is in force", p.RootVersion, current.RootVersion).
			Try("let the newest roots sign it")
	}
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
