// Package admit answers the API server's admission reviews.
//
// It reads reviews within limits, carries the bytes of the object to internal/verify and the Answer
// back; it holds no rule about signatures or policies of its own. What is its own: canaries, and that
// everything it cannot read, cannot judge or could not judge in time is refused. It makes no call
// while a request waits and writes nothing.
//
// The threat it stops: an object that nobody vouched for being stored by whoever may write it.
//
// Specification: docs/spec/admission.md.
package admit
