// Package guide runs the commands of a page of docs/ as somebody who copies them would, so that no page
// tells of a command that does not work. It judges nothing: tests say what a block must print.
package guide
