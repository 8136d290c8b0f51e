// Command hostwarrant-relay is the in-cluster courier: it takes HostRuns to their
// hosts over SSH.
//
// As "hostwarrant-relay mint", under another account, it gives bootstrap tokens to runs
// that join, and takes them back.
//
// It holds no key that can vouch for anything: the key it logs in with opens a
// connection, and the host runs only what an offline key signed. What it may do
// in the cluster is in docs/spec/relay.md, Rights.
package main
