// Package fresh shares a read among all who asked for it before it began.
//
// It is no cache: who asks while a read is on its way gets the next one, and never
// what was found before.
//
// The threat it stops: a judgement by what was stored before somebody asked for it,
// which a revocation in between would not reach.
package fresh
