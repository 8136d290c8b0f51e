// Package shimhost makes a pool host in a mount namespace and sends envelopes to the real
// shim there: trust files, state in memory, a signer, a root, a cluster. Tests and measures
// of the shim share it. Nothing is written to the machine.
package shimhost
