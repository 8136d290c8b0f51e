// Command mutants deletes each marked security check in turn and runs the fast tests,
// which must notice. Each mutant lives in a copy of the tree, so that neither an
// interrupt nor a crash leaves a source without its check behind. First the tests of
// the package (or, for a script, of the packages below its directory) run, and only if
// the mutant survives these, all fast tests.
//
// Exit status: 0 all mutants were killed, 1 some survived, broke the build or made a test hang, 2 usage,
// 3 it could not be decided.
package main
