// Package policies holds nothing but the test of the examples beside it.
package policies
