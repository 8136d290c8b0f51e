// Package signature reads and verifies the annotations with which kubescape's tools
// sign: an ECDSA signature over a digest, and a self-signed certificate of its key.
//
// The key is parsed once: the one that verifies is the one whose fingerprint is given
// to policy. Whether it may sign is not decided here. The certificate's dates are not
// looked at, as in the format; revocation and the policy's own term stand in for them.
package signature
