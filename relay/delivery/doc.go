// Package delivery takes one envelope to one host and says what came of it: it
// puts the wire of docs/spec/envelope.md on an SSH connection, tells how the run
// ended from exit code, trailer and outcome record, and keeps the end of the
// output.
//
// It knows nothing of Kubernetes and decides nothing about what may run.
//
// The threat it stops: an answer that looks like success and is not, such as a
// cut connection, a forged trailer, or an exit code that no shim gives.
//
// Specification: docs/spec/relay.md.
package delivery
