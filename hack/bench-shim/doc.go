// Command bench-shim measures the shim: the whole process as root, with a run-id and all
// trust files in place, state in memory, against "ssh-keygen -Y verify && bash SCRIPT"
// alone. Runs of all kinds take turns, so that what else the machine does meets each alike;
// the medians, their ratios, and beside them the programs and syncs of one run are printed.
//
// Exit status: 0 measured, 1 the shim gave another answer than it must, 2 usage.
package main
