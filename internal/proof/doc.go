// Package proof reads and verifies what a host says of itself by its own key: the
// answer of the shim's phase prove (docs/spec/shim.md, Proof).
//
// It stops three things: a text that two readers take differently (each fact has
// one spelling and one place), a proof of another host, run or time that is shown
// again (host key, run UID and nonce must be the ones that were asked for), and a
// host key that nobody but the courier vouches for: which keys count is the
// caller's to say, from what the courier cannot write.
//
// It asks nobody and keeps nothing. What the facts are good for is the caller's
// business: docs/spec/join.md, Proof.
package proof
