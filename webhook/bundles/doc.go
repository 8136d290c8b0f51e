// Package bundles keeps one composite profile for each bundle of signed fragments, and says what
// became of the bundle in a ProfileBundle.
//
// Fragments live in a CustomResourceDefinition, where admission judged each write, or behind an
// aggregated API server that asks no webhook, ignores selectors and lists objects without their specs.
// Both are treated alike: metadata alone is watched, labels are compared here, what nobody signed is
// counted and never read, and what is read is verified by the engine. Whether a set of fragments may
// take the place of the last is internal/bundle's decision; here it is carried out: marks into the
// ledger first, then the composite, then the words.
//
// The threat it stops: whoever can write, delete or hold back objects, and has no key, changing the
// profile that agents enforce, without anybody seeing it.
//
// Specification: docs/spec/bundle.md.
package bundles
