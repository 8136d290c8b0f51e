// Package cluster makes what a cluster holds, for tests with a fake API server: the same Verified host and
// signed trust policy in each of them.
//
// The threat it stops: two tests that mean the same object by different ones.
package cluster
