// Package decision holds the one answer the trust core gives: an outcome, a
// Reason from a closed set, and a sentence for the person who was refused.
//
// It judges nothing itself. It stops one threat: an unset or half-built answer
// being read as consent. The zero Outcome denies, and only Allow allows.
//
// The Reasons are listed in docs/spec/reasons.md; an addition needs a line there.
package decision
