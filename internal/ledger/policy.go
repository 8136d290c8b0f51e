package ledger

import (
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Check says whether a policy that the roots signed may come into force after what is
// remembered: as Policy.Supersedes says it of the one in memory, but over restarts.
// The zero Policy remembers nothing. The error carries PolicyRollback,
// PolicyEquivocation, SerialJump or RootFork.
func (r Policy) Check(p *trustpolicy.Policy) error {
	if err := r.checkRoots(p); err != nil {
		return err
	}
	const next = "give it the next version and sign it again"
	// check: PolicyRollback: an old policy may still name a signer that was removed
	if p.Version < r.Version {
		return decision.Errorf(decision.PolicyRollback, "version %d is below %d, which was in force", p.Version, r.Version).Try(next)
	}
	// check: PolicyEquivocation: two policies under one version could be shown before and after a restart
	if p.Version == r.Version && p.Digest != r.Digest {
		return decision.Errorf(decision.PolicyEquivocation, "version %d was in force with other bytes (%.19s, this is %.19s)", p.Version, r.Digest, p.Digest).Try(next)
	}
	// check: SerialJump: a slip must not use up the numbers
	if r.Version > 0 && p.Version > r.Version+trustpolicy.MaxStep {
		return decision.Errorf(decision.SerialJump, "version %d is more than %d above %d", p.Version, trustpolicy.MaxStep, r.Version).Try(next)
	}
	return nil
}

func (r Policy) checkRoots(p *trustpolicy.Policy) error {
	// check: PolicyRollback: roots that were replaced must not come back with the keys that were taken from them
	if p.RootVersion < r.RootVersion {
		return decision.Errorf(decision.PolicyRollback, "root version %d is below %d, which was in force", p.RootVersion, r.RootVersion).
			Try("let the newest roots sign it, with the links to them in spec.rootChain")
	}
	known := p.Generation(r.RootVersion)
	// check: RootFork: two generations of one version could be shown before and after a restart
	if known != nil && !r.sameRoots(known) {
		return decision.Errorf(decision.RootFork, "root version %d was in force with other keys", r.RootVersion).
			Try("find out who signed it: two documents of one root version must not exist")
	}
	return nil
}

// sameRoots compares a generation with the one that is remembered. A plain list has
// no digest: it is the anchor that was pinned, and is compared by its keys.
func (r Policy) sameRoots(known *trustpolicy.Roots) bool {
	if r.RootDigest != "" && known.Digest() != "" {
		return r.RootDigest == known.Digest()
	}
	pinned, err := trustpolicy.ParseRoots(r.Roots)
	if err != nil || pinned.Version != known.Version {
		return r.RootDigest == known.Digest()
	}
	return pinned.Same(known)
}

// CheckAnchor says whether a reader of the cluster may start with these roots: they are
// those of the first start, or the stored policy's chain leads from those to them. The
// error carries AnchorChanged.
func (r Policy) CheckAnchor(roots []byte, chain []statement.Signed, clusterID string, now time.Time) error {
	if r.AnchorDigest == "" || r.AnchorDigest == trustpolicy.Digest(roots) {
		return nil
	}
	changed := decision.Errorf(decision.AnchorChanged, "the anchor is %.19s, pinned is %.19s, and no root chain leads there", trustpolicy.Digest(roots), r.AnchorDigest).
		Try("restore the anchor, or apply a trust policy whose spec.rootChain leads to the new roots")
	pinned, pinnedErr := trustpolicy.ParseRoots(r.Roots)
	given, givenErr := trustpolicy.ParseRoots(roots)
	// check: AnchorChanged: what cannot be read cannot be compared
	if pinnedErr != nil || givenErr != nil {
		return changed
	}
	reached, err := pinned.Reaches(given, chain, clusterID, now)
	// check: AnchorChanged: whoever may write the anchor must not be able to bring roots of their own
	if err != nil || !reached {
		return changed
	}
	return nil
}

// Pinned is the record with these roots as the anchor: of the first start, or of one that
// CheckAnchor let in.
func (r Policy) Pinned(roots []byte) Policy {
	r.Roots, r.AnchorDigest = slices.Clone(roots), trustpolicy.Digest(roots)
	return r
}

// After is the record once p is in force. It only ever rises: whoever calls it asked Check.
func (r Policy) After(p *trustpolicy.Policy) Policy {
	if p.Version >= r.Version {
		r.Version, r.Digest = p.Version, p.Digest
	}
	roots := p.Roots()
	if roots == nil || roots.Version < r.RootVersion {
		return r
	}
	// A plain list of the keys of a document has no digest: the document's stays, for another document
	// of that version must not take its place.
	if roots.Version > r.RootVersion || roots.Digest() != "" {
		r.RootDigest = roots.Digest()
	}
	r.RootVersion = roots.Version
	return r
}

// ResetUsed reports whether a reset, by its id, was applied already.
func (r Policy) ResetUsed(id string) bool { return slices.Contains(r.ResetsUsed, id) }

// Use is the record once a reset was applied.
func (r Policy) Use(id string) Policy {
	if !r.ResetUsed(id) {
		r.ResetsUsed = append(slices.Clone(r.ResetsUsed), id)
	}
	return r
}
