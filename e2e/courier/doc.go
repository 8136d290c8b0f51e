// Package courier is the installed product with a relay as its own process, for the end-to-end
// tests that take HostRuns to real hosts: keys and policy as hostwarrant init makes them, hosts
// that judge by that policy, and what tests ask of HostRuns.
//
// It judges nothing itself. The threat it stops is a test that reaches hosts by another way than
// the product does.
package courier
