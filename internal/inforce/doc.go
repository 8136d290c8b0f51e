// Package inforce decides which trust policy is in force, for the webhook and for the relay.
//
// Whatever offers a policy is only a courier: each offer is verified against the anchor, which the
// operator installed, and may only supersede what is in force, what other sources hold and what the
// cluster remembers. A bad offer is refused and reported once; what is in force stays. An anchor that
// is not the one of the first start, and is not linked to it, puts nothing in force.
//
// The threat it stops: a policy that nobody vouched for, an old one, another cluster's, or one signed
// by roots that somebody brought along, taking effect. It reads no cluster, no file and no clock.
//
// Specification: docs/spec/admission.md, Policy in force.
package inforce
