// Package approver decides about the certificate requests that kubelets make with
// the minter's tokens: it approves the one that its HostRun is for and whose key the
// host has proved to be its kubelet's, and denies every other.
//
// It runs beside the minter, under the same account. It reads no Secret, talks to no
// host, and believes nothing that the relay writes but what a host signed. Requests
// of anybody else, a kubelet's renewals among them, are never touched.
//
// The threat it stops: whoever holds a bootstrap token becomes any node
// (kubernetes/kubernetes#57164). Here a stolen one is good for nothing.
//
// Specification: docs/spec/join.md, Approval and Proof.
package approver
