// Package judge decides, for relay and minter, whether a run may happen: its host, profile, phase and
// the run itself by the engine of the webhook, under the policy in force, from what is stored.
//
// It writes nothing, dials nobody and reads no Secret.
//
// The threat it stops: an object that was admitted under an older policy or past the webhook, and would
// still run or be given a token.
//
// Specification: docs/spec/relay.md, Judging.
package judge
