// Package krl reads what revokes signers, and writes it.
//
// It reads OpenSSH's key revocation lists (PROTOCOL.krl) and plain lists of
// public keys, as "ssh-keygen -Y verify -r" takes either. A list that it reads
// revokes at least what ssh-keygen takes as revoked by the same bytes; a list
// that it does not understand whole is an error, since a section that is skipped
// is a key that is not revoked. It writes lists of SHA-256 fingerprints.
//
// It does not ask who wrote a list: a KRL has no signature that OpenSSH checks
// on every version, so a list comes from a signed trust policy or from disk.
// docs/spec/allowed-signers.md states what is read.
package krl
