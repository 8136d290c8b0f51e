// Package harness holds what the end-to-end tests put around the product to try it: a balancer
// before several webhook replicas, a supply of replicas that are stopped and replaced the way a
// Deployment does it, a client that applies without pause and keeps count, a foreign mutating
// webhook, a gate that holds a write of the relay's, a second served version of a CRD, a reader of the audit log, and a poster that reaches
// a replica without the API server between them.
//
// It judges nothing itself and holds no rule of the product. The threat it stops is a test that
// proves less than it says: replicas that are never really gone, refusals that were a broken
// connection, a foreign webhook that was never asked.
package harness
