// Package policydiff says what a trust policy lets through more or less than another.
//
// The threat it stops: a policy that widens, or takes away, what nobody noticed. It judges nothing and
// verifies nothing; whoever asks has both policies already.
package policydiff
