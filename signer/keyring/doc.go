// Package keyring is the only place where the project loads or makes private keys.
//
// A key is a private key file of OpenSSH, in PEM, or of cosign, or a public key whose private half an
// ssh-agent holds (through which FIDO2 and PKCS#11 tokens are reached). Callers get an ssh.Signer and
// never see key bytes. Which keys are strong enough is decided by the trust core, before anybody is asked
// for a passphrase or a touch.
//
// The threat it stops: a private key read by a component that runs in a cluster or on a host, and key
// material in an error message. Errors here name files and fingerprints only.
//
// Formats: openssh-key-v1 (PROTOCOL.key), PKCS #1, PKCS #8, SEC 1, cosign's encrypted PKCS #8 (sigstore's
// cryptoutils), the agent protocol (draft-miller-ssh-agent).
package keyring
