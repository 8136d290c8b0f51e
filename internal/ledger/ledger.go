// Package ledger holds what a cluster remembers of the versions it took, and the
// rules by which such a record moves: up, and down only where a root-signed reset says so.
//
// The threat it stops: an old profile or policy that was signed, and still verifies,
// coming back after a newer one was seen. Storing the record is the business of others.
//
// Specification: docs/spec/ledger.md.
package ledger

// Mark is the highest version of a profile that was seen stored and verified.
type Mark struct {
	Serial int64
	// Digest is object.JoinProfile.Digest of it: "sha256:" and hex.
	Digest string
}

// Policy is what is remembered of trust policies.
type Policy struct {
	// Roots is the anchor's roots file as of the first start; AnchorDigest is its digest.
	Roots        []byte
	AnchorDigest string
	// RootVersion and RootDigest are of the newest generation of roots that was in force;
	// RootDigest is "" where that is a plain list.
	RootVersion int
	RootDigest  string
	// Version and Digest are those of the newest policy that was in force.
	Version int
	Digest  string
	// ResetsUsed are the ids of resets that were applied.
	ResetsUsed []string
}
