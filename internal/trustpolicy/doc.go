// Package trustpolicy reads and verifies the document in which an offline root
// says which key may vouch for what.
//
// A document counts only after k distinct root keys signed its exact bytes for
// this purpose; the bytes are parsed after that, never before. It expires, its
// version only rises, and it names the clusters it is for, so that an old or a
// laxer policy of another cluster cannot be replayed. A field that this version
// does not know is an error: a rule that is not enforced must not look enforced.
//
// It reads no file and no object, and keeps nothing: the caller says which
// policy is in force. The format is docs/spec/trust-policy.md.
package trustpolicy
