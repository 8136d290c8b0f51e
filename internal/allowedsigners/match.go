package allowedsigners

import "strings"

// maxPattern is what OpenSSH's match_pattern_list takes (match.c: char sub[1024]);
// where one is longer it takes the whole list as matching nothing.
const maxPattern = 1022

// patterns is a list of patterns with commas between them, as written.
type patterns struct{ positive, negative []string }

func parsePatterns(text string) (patterns, error) {
	var p patterns
	if text == "" {
		return p, nil // matches nothing
	}
	for pattern := range strings.SplitSeq(text, ",") {
		name, negated := strings.CutPrefix(pattern, "!")
		// check: Malformed: ssh-keygen takes a list with such a pattern as empty, negations included
		if len(name) > maxPattern {
			return patterns{}, malformed("pattern is longer than %d bytes", maxPattern)
		}
		if negated {
			p.negative = append(p.negative, name)
		} else {
			p.positive = append(p.positive, name)
		}
	}
	return p, nil
}

// match reports whether any pattern matches s and no negated one does, wherever it stands.
func (p patterns) match(s string) bool {
	for _, pattern := range p.negative {
		// check: SignerScope: who is excluded by name must not come in through a wildcard
		if Glob(pattern, s) {
			return false
		}
	}
	for _, pattern := range p.positive {
		if Glob(pattern, s) {
			return true
		}
	}
	return false
}

// Glob matches * and ? as OpenSSH's match_pattern does: byte by byte, with no
// escape and no class.
func Glob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
