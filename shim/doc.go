// Package shim carries the shim, kpssh-shim beside this file: one POSIX sh program
// that a pool host runs as the forced command of the user kpssh. It verifies a
// script with stock ssh-keygen and runs those bytes as root, so a host needs
// nothing of ours but this file and its trust files. What pins the account to it
// is in etc/. All other Go code here is tests.
//
// It stops whoever holds the SSH login key but no signing key: what reaches the
// host is either signed by a key this host trusts, or refused before anything
// happens. It does not judge what a signed script does. Its contract is
// docs/spec/shim.md.
//
// The tests run the real file as root in a mount namespace (tests/enter), under
// dash, busybox and bash --posix. One case: go test ./shim -run 'TestShim/dash/NAME'.
// With -short only dash is used.
package shim
