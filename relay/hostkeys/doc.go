// Package hostkeys knows which host keys count where the relay's word does not: the
// policy's hostCA of a namespace, and the ConfigMap hostwarrant-host-keys, neither
// of which the relay can write.
//
// The threat it stops: a relay, or whoever writes the Secrets of a host namespace,
// that names a key of its own as a host's, and so can prove what it likes.
//
// Specification: docs/spec/join.md, Proof.
package hostkeys
