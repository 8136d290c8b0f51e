// Package ledger keeps the cluster's durable record of the highest versions that were seen: of the
// anchor and trust policies, and of each SSHJoinProfile.
//
// The leader of the controller alone writes it, after an object was seen stored and verified in
// enforce terms: a dry run, or what was only excused, raises nothing. Numbers only rise, but for a
// reset that the roots signed, which counts once. A write that somebody else overtook is judged again
// by what was read again. The rules are internal/ledger and verify.Recordable; here is the storing.
//
// The threat it stops: a version of a profile or policy that was replaced or revoked, and still
// verifies, coming back.
//
// Specification: docs/spec/ledger.md.
package ledger
