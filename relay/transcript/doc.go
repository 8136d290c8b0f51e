// Package transcript keeps the end of what a run printed, fit to be shown: in
// bounded memory, without secret values and without bytes that steer a terminal.
//
// It does not judge output and keeps no more than the tail.
//
// The threats it stops: a secret that a script echoes and that anyone who may
// read a HostRun then reads, also where it arrives in two pieces; output without
// end; and escape sequences that rewrite what kubectl shows.
//
// Specification: docs/spec/relay.md, Transcript.
package transcript
