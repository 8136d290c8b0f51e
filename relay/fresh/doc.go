// Package fresh shares reads: all who ask for the same before a read of it begins are given what that finds.
//
// It is no cache: who asks while a read is on its way gets the next one, and never
// what was found before.
//
// The threat it stops: a judgement by what was stored before somebody asked for it,
// which a revocation in between would not reach.
//
// Specification: docs/spec/relay.md, Judging.
package fresh
