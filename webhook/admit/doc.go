// Package admit answers the API server's admission reviews.
//
// It carries the bytes of the object to internal/verify and the Decision back; it holds no rule
// about signatures or policies of its own. What is its own: which updates are exempt (those that
// leave the guarded content alone), what mode warn makes of a refusal, and that everything it
// cannot judge is refused. It makes no call while a request waits and writes nothing.
//
// The threat it stops: an object that nobody vouched for being stored by whoever may write it.
//
// Specification: docs/spec/admission.md.
package admit
