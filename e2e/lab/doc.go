// Package lab runs the real parts that the end-to-end tests and the demo need, on one Linux machine, as root:
// a Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) and any number of hosts with
// Debian's own sshd, each an overlay of this machine's root in namespaces of its own.
//
// A Lab owns a state directory, a bridge with a free 10.x /24, and everything started through it. Whatever it
// makes is written to the journal of the state directory first, so that one routine, Down, can undo it from any
// process: Close calls it, and so does a watchdog process when the program that made the lab is gone for any
// reason (Ctrl-C, panic, test timeout, SIGKILL), unless Detach was called.
//
// What it does not: it writes nothing to the machine outside its state directory, adds no user, and builds no
// control plane (that is e2e/cluster/build.sh, minutes of work that must not hide in a test's time limit).
// The hosts are test subjects, not a security boundary against root inside them.
//
// The threat it stops is a test that lies: a stubbed API server, a fake sshd or a shim run outside the account,
// sudoers rule and forced command that protect it in production would prove nothing.
//
// See docs/development/lab.md.
package lab
