// Package sarif writes findings as SARIF 2.1.0, which code hosts and editors show beside the lines.
//
// It writes what hostwarrant has to say and no more: one run, the tool's rules, results with a place.
// It reads no SARIF and judges nothing.
//
// The threat it stops is a finding that nobody sees: output is stable, so that a diff shows what is new, and
// what an author asked to ignore is kept as suppressed, with the reason, instead of being left out.
//
// Format: OASIS SARIF 2.1.0, https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; the sections
// are named beside the types.
package sarif
