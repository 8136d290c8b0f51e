// Package output writes files so that nothing is left half-written and nothing is overwritten unasked.
//
// It knows nothing of what it writes. The threat it stops: a signature file that a reader sees torn,
// and a file of the user's that a slip replaces.
package output
