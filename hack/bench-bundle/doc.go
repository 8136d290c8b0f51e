// Command bench-bundle measures what a bundle of signed fragments costs whoever puts it
// together: 3, 64, 1,000 and 10,000 fragments are made and signed, then verified,
// assembled, and verified again unchanged. Sizes take turns, so that what else the
// machine does meets each alike.
//
// It prints times, the signatures that were checked, the memory that was in use at most,
// and how much more 10,000 cost than 1,000, which must be at most 12 times
// (docs/spec/bundle.md).
//
// Exit status: 0 measured, 1 a figure is over its bound or an answer was wrong, 2 usage.
package main
