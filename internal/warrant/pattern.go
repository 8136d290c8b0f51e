package warrant

import (
	"strconv"
	"strings"
)

// Limits of a pattern (docs/spec/warrant.md, Patterns): grep unrolls each
// repetition, and its work grows with the square of what may be left out.
const (
	maxPattern  = 255
	maxRepeat   = 255
	maxUnrolled = 512
)

// checkPattern accepts the subset of regular expressions that RE2 and POSIX ERE
// (in the C locale) read alike.
func checkPattern(re string) *wordsError {
	// check: WarrantMalformed: a pattern that matches nothing, or takes minutes to compile
	if re == "" || len(re) > maxPattern {
		return malformedWords("re has %d bytes; from 1 to %d may stand there", len(re), maxPattern)
	}
	unrolled := 0
	for rest := re; rest != ""; {
		n, fault := atom(rest)
		if fault != "" {
			return malformedWords("re %q: %s", re, fault)
		}
		rest = rest[n:]
		n, most, fault := quantifier(rest)
		if fault != "" {
			return malformedWords("re %q: %s", re, fault)
		}
		rest = rest[n:]
		unrolled += most
	}
	// check: WarrantMalformed: a pattern that fills memory when it is compiled
	if unrolled > maxUnrolled {
		return malformedWords("re %q: its repetitions add up to %d, at most %d", re, unrolled, maxUnrolled)
	}
	return nil
}

// atom measures the literal, dot or set that a pattern starts with.
func atom(re string) (n int, fault string) {
	switch {
	case re[0] == '[':
		return set(re)
	case strings.IndexByte(`]\^$*+?{}()|`, re[0]) >= 0:
		return 0, strconv.Quote(re[:1]) + " is no literal; in a set, [*], most signs may stand for themselves"
	default:
		return 1, ""
	}
}

// set measures a bracket expression.
func set(re string) (n int, fault string) {
	members, _, closed := strings.Cut(re[1:], "]")
	switch {
	case !closed:
		return 0, "a set does not end"
	case members == "":
		return 0, "a set is empty; [ and ] may not stand in one"
	case members[0] == ':':
		return 0, "a set starts with a colon, which grep takes for a class"
	case strings.ContainsAny(members, `^[\`):
		return 0, `a set holds one of ^ [ \`
	}
	for i := 0; i < len(members); i++ {
		if members[i] == '-' {
			return 0, "a minus in a set stands between two letters or digits, or nowhere"
		}
		if i+2 >= len(members) || members[i+1] != '-' {
			continue
		}
		from, to := members[i], members[i+2]
		if !alphanumeric(from) || !alphanumeric(to) || from > to {
			return 0, "a range in a set goes up from a letter or digit to another"
		}
		i += 2
	}
	return len(members) + 2, ""
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// quantifier measures what stands behind an atom, and how often it repeats at most.
func quantifier(re string) (n, most int, fault string) {
	if re == "" {
		return 0, 0, ""
	}
	if strings.IndexByte("?*+", re[0]) >= 0 {
		return 1, 0, ""
	}
	if re[0] != '{' {
		return 0, 0, ""
	}
	bounds, _, closed := strings.Cut(re[1:], "}")
	low, high, two := strings.Cut(bounds, ",")
	if !two {
		high = low
	}
	m, okLow := bound(low)
	most, okHigh := bound(high)
	if !closed || !okLow || !okHigh || m > most {
		return 0, 0, "a repetition is {m} or {m,n} with m ≤ n ≤ " + strconv.Itoa(maxRepeat)
	}
	return len(bounds) + 2, most, ""
}

func bound(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= maxRepeat && strconv.Itoa(n) == text
}
