package admit

import "github.com/hostwarrant/hostwarrant/internal/decision"

const (
	// maxSeparators bounds how many ":" and "," a review has, its two objects together: two for a
	// member, one for an element. What is decoded takes up to about 150 bytes for a member, so that the
	// three million that fit into MaxBody take 400 MiB, and as many as are let through 8 MiB. An
	// honest review has far fewer: a profile of four scripts of 256 KiB a few dozen, an SSHNodeClass of
	// the largest legal size a few hundred, the managedFields of an object with many writers a few
	// thousand. Only a ContainerProfile that was learned of a busy container comes near: four for each
	// file that it opens, in the object and the old object.
	maxSeparators = 100000
	// maxDepth bounds how deep values lie in each other; honest ones lie a dozen deep, and
	// managedFields no deeper than the object that they describe.
	maxDepth = 100
)

// countable bounds what a body expands to, in one pass and without decoding it. It counts what stands
// outside strings; of a body that is no JSON it counts something, and the decoder refuses it.
func countable(body []byte) error {
	separators, depth, deepest := 0, 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = endOfString(body, i+1)
		case ':', ',':
			separators++
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	// check: TooLarge: what a body expands to must be bounded, before anybody vouched for it
	if separators > maxSeparators {
		return decision.Errorf(decision.TooLarge, "the review has more than %d colons and commas outside of texts", maxSeparators).
			Try("remove annotations, labels or managedFields that nobody needs")
	}
	// check: TooLarge: readers that descend must not run out of stack
	if deepest > maxDepth {
		return decision.Errorf(decision.TooLarge, "the review is nested more than %d deep", maxDepth).
			Try("take out of the object what is nested so deep")
	}
	return nil
}

// endOfString finds the quote that ends the string whose text begins at i.
func endOfString(body []byte, i int) int {
	for i < len(body) && body[i] != '"' {
		if body[i] == '\\' {
			i++ // what is escaped ends nothing
		}
		i++
	}
	return i
}
