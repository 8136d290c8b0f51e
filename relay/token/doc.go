// Package token knows what a run's bootstrap token is and where it lies: names, contents and life of
// the two Secrets that hold it, and what a HostRun says of it. Minter and relay share it.
//
// It talks to nobody. The threats it stops: a token for more than one host, for more than its own
// group, or for longer than a join takes.
//
// Specification: docs/spec/join.md, Token.
package token
