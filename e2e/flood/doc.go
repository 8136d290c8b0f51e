// Package flood puts many HostRuns at once to one relay, with the product on a
// real API server and stand-ins of sshd in a process of their own: each run
// happens once, and the profiles get on equally. Its benchmark measures the relay
// (make bench-relay).
package flood
