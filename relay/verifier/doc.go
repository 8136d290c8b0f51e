// Package verifier asks a service outside whether a host may join: the place for
// what we do not know ourselves, such as a TPM's or a cloud's attestation.
//
// The service can only refuse: it is asked last, when everything else has passed.
// Whatever is no plain consent refuses, and every wait and size is bounded: a
// service that is slow, broken, moved, or not the one that was meant keeps hosts
// out and lets none in.
//
// Specification: docs/spec/join.md, Verifier.
package verifier
