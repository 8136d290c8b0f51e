// Package faults breaks what lies between a relay and its hosts, at each place where it can break, and
// asserts how the run ends, in which words, and that its script ran once. The files without a control
// plane call delivery as the relay does and have shorter waits, which are its arguments; those with one
// run the relay as its own process, with the waits that it ships with.
//
// Hosts are real: their cable is pulled, their processes are stopped and killed. Only what no sshd does
// is played.
package faults
