// Package refresh renews the trustedSigners that the mutating webhook filled into hosts, when the
// signers of the trust policy change.
//
// karpenter-provider-ssh verifies by that list alone, so that a signer who was removed from the policy
// would go on vouching there. Refreshed is only a list that equals one which an earlier policy
// rendered, and that nobody but us owns by managedFields: what a person or a repository wrote is
// theirs, is reported, and stays. The write goes through admission like any other.
//
// Specification: docs/spec/rejudgement.md, Trusted signers of hosts.
package refresh
