// Package mark finds the marks of security checks in the tree and makes the mutant of
// each, the source without that check.
//
// A mark is a comment line directly above the check it names:
//
//	// check: REASON[,REASON…]: what attack it stops     (Go, above an if statement)
//	# check: CODE: what attack it stops                  (sh, above one line)
//
// REASON is a reason of internal/decision, CODE an exit code of the shim. In Go the
// mutant's condition is `false && (…)`, in sh the line is gone. The package only reads;
// it stops the silent loss of a check by making "would a test notice?" a question that
// a program can ask.
package mark
