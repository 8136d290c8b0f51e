// Package transport runs commands on one host over SSH, one after the other, with
// a pinned host key and a bound on every wait.
//
// It knows nothing of Kubernetes, of scripts or of the shim: bytes go in on
// stdin, bytes come out, and an exit status. It never learns a host key by
// itself: without a pin there is no connection.
//
// The threats it stops: a machine in the middle that answers for the host, a
// host that keeps a caller waiting for ever or fills its memory, and a lost
// connection that is taken for an end.
//
// Specification: docs/spec/relay.md, Connection.
package transport
