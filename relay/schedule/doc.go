// Package schedule says whose turn it is on the hosts: one at a time on each host,
// no more than a limit on all of them, and the slots shared fairly between
// namespaces, and within one between profiles.
//
// Line is a queue for a controller: client-go's delaying and rate-limited queues
// stand on it, and each of the controller's workers is a slot. What waits for its
// host or for a slot is kept in the Line alone, takes no worker and is not looked
// at again before something gets free. It is not client-go's own queue, since that
// hands out whatever stands first, and its exchangeable order cannot be told that a
// host got free.
//
// The threat it stops: one tenant, or one profile whose hosts do not answer, that
// keeps everybody else waiting.
//
// Specification: docs/spec/relay.md, Scheduling.
package schedule
