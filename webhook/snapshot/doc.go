// Package snapshot keeps in memory what admission judges by beside the policy: marks of the ledger,
// what is known of stored profiles, hosts, node classes, runs and nodes.
//
// One informer a kind; what is not needed is dropped before an object is stored, scripts and
// signatures above all. Nothing here waits while a request is judged, and nothing is written.
// Until every kind that the cluster serves has been read once, there is no snapshot, and whoever asks
// must refuse.
//
// The threat it stops: an object being judged as if the rest of the cluster were empty.
//
// Specification: docs/spec/admission.md.
package snapshot
