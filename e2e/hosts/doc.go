// Package hosts attacks one pool host: a real sshd with the shipped configuration, the real user kpssh with its
// sudoers entry, and the shim as it is delivered, in a host of e2e/lab. There is no control plane.
//
// Each attack goes through ssh, or through what the account kpssh could do on the host, asserts the exact exit code
// and that nothing ran and nothing of the host's state changed, and has the honest variant beside it, which runs.
//
// What it is not: a test of the shim's grammar readers, which shim/tests and internal/ hold against each other.
package hosts
