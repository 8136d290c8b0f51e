// Package policyfile reads, verifies and writes trust-policy.signed.json, the file
// in which kubescape's signed-fragments build keeps its trust policy.
//
// It carries such files into our own trust policy and back; nothing here decides
// about a cluster. It stops one threat: that a file is taken over which its root
// did not sign, or which means more than what was signed (fields that the signature
// does not cover, a mode that is not known). What of the two formats corresponds
// stands in docs/spec/trust-policy.md.
package policyfile
