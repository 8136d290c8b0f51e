// Package policy holds the trust policy that decisions are made with.
//
// Whatever offers a policy (the TrustPolicy object, a file) is only a courier: each offer is
// verified against the anchor, which the operator installed, and may only supersede what is in
// force. A bad offer is refused once, loudly, and what is in force stays; losing the object
// unloads nothing. Readers get an immutable snapshot.
//
// It decides nothing about objects and reads no cluster: see webhook/admit and internal/verify.
// The threat it stops is a policy that nobody vouched for, or an old or foreign one, taking effect.
//
// Specification: docs/spec/admission.md.
package policy
