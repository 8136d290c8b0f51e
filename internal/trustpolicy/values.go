package trustpolicy

import (
	"regexp"
	"slices"
	"strings"
)

// valued are the paths whose values a class may limit. The others (call stacks, selectors, a
// whole seccomp profile) hold no text that would say what is let through.
func valued() []string {
	return []string{
		"architectures", "capabilities", "execs", "opens", "syscalls", "endpoints", "imageID", "imageTag", "rulePolicies", "ingress", "egress",
	}
}

// MaySet reports whether fragments of the class may set a path.
func (c FragmentClass) MaySet(path string) bool {
	return slices.Contains(c.AllowedSpecPaths, "*") || slices.Contains(c.AllowedSpecPaths, path)
}

// Takes reports whether fragments of the class may give a path this value.
func (c FragmentClass) Takes(path, value string) bool {
	return c.taken(path, func(pattern string) bool { return MatchesValue(pattern, value) })
}

// TakesAddress is Takes of an IP address, or of a range of them.
func (c FragmentClass) TakesAddress(path, value string) bool {
	return c.taken(path, func(pattern string) bool { return MatchesAddress(pattern, value) })
}

func (c FragmentClass) taken(path string, matches func(string) bool) bool {
	patterns, limited := c.Values[path]
	return !limited || slices.ContainsFunc(patterns, matches)
}

// valuePattern is a text with at most one "*", at its beginning or its end.
func valuePattern(pattern string) bool {
	return pattern != "" && strings.Count(pattern, "*") <= 1 && !strings.Contains(pattern[1:max(1, len(pattern)-1)], "*")
}

// MatchesValue reports whether everything that a value of a fragment stands for is in the
// pattern: a text, or a beginning or an end of one, with "*" for the rest. "/usr/bin/*" takes
// /usr/bin too.
//
// In a value "⋯" stands for one element of a path, and "⋯⋯" or "*" for any number. What it
// stands for is known only before the first and after the last of them, so that these parts
// are what must match.
func MatchesValue(pattern, value string) bool {
	if pattern == value || pattern == "*" {
		return true
	}
	if climbs(value) {
		return false
	}
	head, tail, wild := literal(value)
	if beginning, ok := strings.CutSuffix(pattern, "*"); ok {
		directory, below := strings.CutSuffix(beginning, "/")
		return strings.HasPrefix(head, beginning) || below && !wild && value == directory
	}
	end, ok := strings.CutPrefix(pattern, "*")
	return ok && strings.HasSuffix(tail, end)
}

// climbs reports whether a path leaves what it seems to lie in.
func climbs(value string) bool {
	return slices.ContainsFunc(strings.Split(value, "/"), func(element string) bool { return element == "." || element == ".." })
}

// literal gives the parts of a value before its first and after its last wildcard: the whole where it has none.
func literal(value string) (head, tail string, wild bool) {
	const wildcards = "⋯*"
	first := strings.IndexAny(value, wildcards)
	if first < 0 {
		return value, value, false
	}
	last := strings.LastIndexAny(value, wildcards)
	tail = strings.TrimPrefix(strings.TrimPrefix(value[last:], "⋯"), "*")
	return value[:first], tail, true
}

// oneAddress is what an IP address is written with, and no range of them.
var oneAddress = regexp.MustCompile(`^[0-9a-f.:]+$`)

// MatchesAddress is MatchesValue of an IP address. A range is taken by its own text alone:
// that of 10.0.0.0/8 begins as 10.0.0.1 does, and reaches further.
func MatchesAddress(pattern, value string) bool {
	return pattern == value || pattern == "*" || oneAddress.MatchString(value) && MatchesValue(pattern, value)
}
