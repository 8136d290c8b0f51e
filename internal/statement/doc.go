// Package statement reads, writes and verifies root statements: small signed
// texts by which the roots change what a host trusts, and name their own
// successors.
//
// It stops two things: a second reader that finds another meaning in the same
// bytes (each fact has one spelling, and a text that is not exactly what Text
// would write is refused), and a new generation of roots that the old one did
// not agree to. It applies nothing and remembers nothing: serials are compared
// by whoever keeps them. The format is docs/spec/statement.md.
package statement
