package main

import (
	"crypto/sha512"
	"testing"

	"golang.org/x/crypto/ssh"
)

// signedData is what an SSHSIG signature covers (PROTOCOL.sshsig section 3).
func signedData(t *testing.T, namespace, message string) []byte {
	t.Helper()
	sum := sha512.Sum512([]byte(message))
	return append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{namespace, "", "sha512", string(sum[:])})...)
}
