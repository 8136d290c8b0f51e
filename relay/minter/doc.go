// Package minter gives bootstrap tokens to runs that join: one a run, for one node name, to be taken
// back as soon as it has done its work.
//
// It judges each run itself and trusts nothing of its status but that the relay asks. It reads no
// Secret, dials no host, and runs under an account of its own (hostwarrant-relay mint).
//
// The threats it stops: a credential for the name of another's node, one that the built-in approver
// would make a node of without asking, and one that is left behind.
//
// Specification: docs/spec/join.md, Token.
package minter
