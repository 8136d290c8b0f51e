// Package sshsig reads, verifies and makes strict SSHSIG signatures.
//
// SSHSIG (OpenSSH's PROTOCOL.sshsig) leaves its container malleable: OpenSSH
// takes text after the END line, a filled reserved field and a version 0, and
// other readers take text before the BEGIN line. Two readers that disagree are
// a way in, so this package accepts one spelling only: what it would write
// itself. docs/spec/sshsig.md states the profile; what OpenSSH accepts and we
// refuse is in docs/divergences.md.
//
// It looks at bytes alone. Which key may sign what is the trust policy's
// business, and no private key is loaded here: Sign works through an ssh.Signer.
package sshsig
