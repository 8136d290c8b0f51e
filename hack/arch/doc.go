// Package arch holds tests of the tree itself: who may import whom, who may touch
// files, clocks and private keys, that every security check carries its mark, and that
// the documents point at things that exist. There is no code in it but tests.
//
// The rules are policy. Where a change breaks one, the change is wrong until the rule
// is argued against in docs/adr.
package arch
