// Package lint reads a phase script and its warrant and points at what will bite: code that
// nobody signed, secrets that end up in logs or in files for all, parameters that do not
// arrive, children that hold a run open.
//
// It judges style only where an attack or an outage hangs on it, and it refuses nothing: the
// findings are advice, in the CLI and as admission warnings. It follows what the shell would
// do only as far as each rule says, and never runs anything.
//
// The threat it stops is the honest mistake in a script that is then signed and believed.
//
// docs/spec/lint.md lists the rules. Scripts run under bash whatever their first line says, so
// they are read as bash.
package lint
