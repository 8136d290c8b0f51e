// Package statements applies HostStatements to a real cluster, and sees them reach
// real hosts by the shipped relay: before the next script, after a host was away,
// over a rotation of the roots and a restart of the relay.
package statements
