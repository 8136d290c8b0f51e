// Package envelope reads and writes everything that crosses the wire between
// a relay and a host's shim: the envelope on the shim's stdin, the parameter
// block inside it, the trailer that ends the shim's stdout, the outcome record
// of an earlier run, and the shim's exit codes.
//
// It does not verify signatures, run anything or read warrants; it is pure and
// works on bytes and streams that it is given.
//
// The threats it stops are those of an ambiguous wire: a field that two readers
// understand differently, a parameter that becomes two, a script that prints
// what looks like the end of its own run, and output that was cut and looks
// whole.
//
// Format: docs/spec/envelope.md.
package envelope
