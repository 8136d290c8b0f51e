// Package rejudge verifies stored objects again: when the trust policy changes, when something
// expires, when an object changes, and on a slow timer.
//
// Admission judges a write once. What was stored while nobody guarded the path, what a removed signer
// had vouched for, what has expired since, and what an older replica let in, is found here. Judgement
// is the engine's, in enforce terms; mode and waivers change only the words. Nothing is undone: the
// result is told in events, conditions, metrics and a report, and relay and hosts judge for themselves.
//
// A scan reads each stored object at most once, in pages, and writes nothing where no verdict changed.
//
// Specification: docs/spec/rejudgement.md.
package rejudge
