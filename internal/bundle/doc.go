// Package bundle makes one profile out of signed fragments, and decides what becomes of
// it when they change.
//
// Assemble merges verified fragments in an order that nobody who lists them can choose,
// under a Merkle root that names each. Compose says which of the stored fragments are
// members now, when the last profile is kept instead, and which versions may be
// remembered. Effective does the same for detection rules. Nothing here verifies a
// signature or asks who may sign what: that is the business of internal/fragment and
// internal/verify, whose answers come in.
//
// It stops one threat: that somebody without a key changes a profile by what stands
// beside its signed parts: by the order in which they are listed, by an old part, by a
// part that is no longer there, or by one that nobody signed.
//
// Specification: docs/spec/bundle.md.
package bundle
