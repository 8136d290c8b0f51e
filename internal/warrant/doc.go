// Package warrant reads and writes the warrant: the block of comment lines at the
// top of a phase script that says what the script is for, which the script's
// signature covers. It also judges parameter values by it.
//
// It does not judge whether a warrant is in force: profile, phase, time, serial and
// target are compared by who knows the host or the object. It verifies no signature.
//
// It stops a genuine script from being run for another purpose, and two readers
// from understanding one script differently: the grammar has one spelling for each
// fact, and the reader inside shim/kpssh-shim accepts exactly the same bytes.
//
// Format: docs/spec/warrant.md.
package warrant
