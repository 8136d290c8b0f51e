// Package statements takes what the roots say to every Verified SSHHost that it is
// for: before the next script, in the same connection, and to hosts without runs by
// visits of their own. It keeps in each HostState what a host answered.
//
// It believes nothing that admission let through: each HostStatement is judged again
// by the roots in force. What a HostState says decides when a host is visited next
// and nothing else: before a run a host is told all that this process has not seen
// it take.
//
// The threats: a statement that was replayed, or is another cluster's; a flood of
// objects that nobody signed; hosts that do not answer and keep the others waiting.
//
// Specification: docs/spec/relay.md, Statements.
package statements
