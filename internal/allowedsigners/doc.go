// Package allowedsigners reads OpenSSH's allowed_signers files and says whether
// a signature is by somebody whom such a file lists.
//
// It takes what "ssh-keygen -Y verify" takes and never more: principals with
// patterns and negation, namespaces, certificate authorities, times in UTC. A
// line that it cannot read is an error of the whole file, where ssh-keygen skips
// the line: a slip of the pen must not quietly drop a signer. It does not list
// who signed, and it does not find principals.
//
// docs/spec/allowed-signers.md is the format; what ssh-keygen takes beyond it is
// in docs/divergences.md.
package allowedsigners
