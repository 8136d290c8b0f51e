// Package fakesshd is a fake: an in-process SSH server that answers as a test
// tells it to, for faults that a real sshd does not show on demand (a cut in the
// middle, an endless answer, a host that says nothing). Nothing but tests
// imports it, and what it shows is checked against a real sshd in e2e.
package fakesshd
