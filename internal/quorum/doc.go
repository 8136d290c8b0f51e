// Package quorum counts which of some keys signed a text.
//
// It stops one key from being counted as several: by two signatures, by two
// spellings, by a comment. It does not say how many are enough, nor which keys
// may sign: its callers know that. What a signature is stands in
// docs/spec/sshsig.md; who counts so, in docs/spec/trust-policy.md and
// docs/spec/statement.md.
package quorum
