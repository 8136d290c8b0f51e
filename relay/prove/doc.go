// Package prove brings the approver's questions to hosts, and their answers back: a
// HostRun whose status.proof has a nonce and no text. The host is dialled while its
// join script may still be running; the shim's phase prove takes no run lock.
//
// It judges no answer and signs nothing: what a host says counts by the host's own
// key. Beside the text and its signature it writes nothing.
//
// Specification: docs/spec/join.md, Proof.
package prove
