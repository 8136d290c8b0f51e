// Package corpus reads the list of warrant cases on which every reader of warrants
// must agree (internal/warrant/testdata/cases.txt). Only tests use it.
//
// It stops two readers from drifting apart: what one accepts and the other refuses
// is a way around one of them.
//
// A case is a change to a base script, written as a diff, and a verdict:
//
//	case a serial with a leading zero
//	- #warrant: serial 42
//	+ #warrant: serial 042
//	= line 5: number
//
// "from NAME" names another base than the first. A line that starts with a space
// is a place in the base, "-" takes a line away, "+" adds one there, and "+*N" adds
// N of them, with their number, from 1, for %d. Lines are in Go's escapes for \xNN, \r,
// \t and \\; \(TEXT*N) repeats, and a \ at the end takes the line feed away. The
// verdict is "= accepted", "= none" where there is no warrant, or "= line N: WORD",
// WORD being part of the reason.
package corpus

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Case is one script and what every reader must say of it.
type Case struct {
	Name    string
	Script  []byte
	Verdict Verdict
	Line    int    // of the fault, where it is Refused
	Word    string // of the reason, likewise
}

// Verdict is what a reader says of a script.
type Verdict string

// The verdicts.
const (
	None     Verdict = "none"
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
)

type reader struct {
	bases map[string][]string
	first string
	cases []Case

	inBase string
	name   string
	lines  []string
	at     int
}

// Parse reads a list of cases.
func Parse(text string) ([]Case, error) {
	r := &reader{bases: map[string][]string{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if err := r.line(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, fmt.Errorf("line %d: %v", number, err)
		}
	}
	if r.name != "" {
		return nil, fmt.Errorf("case %q has no verdict", r.name)
	}
	return r.cases, nil
}

func (r *reader) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "base":
		r.inBase = rest
		if r.first == "" {
			r.first = rest
		}
		return nil
	case strings.HasPrefix(line, "\t"):
		r.bases[r.inBase] = append(r.bases[r.inBase], line[1:]+"\n")
		return nil
	case line == "" || strings.HasPrefix(line, "#"):
		return nil
	case word == "case":
		if r.name != "" {
			return fmt.Errorf("case %q has no verdict", r.name)
		}
		if slices.ContainsFunc(r.cases, func(c Case) bool { return c.Name == rest }) {
			return fmt.Errorf("case %q is there twice", rest)
		}
		r.name = rest
		return r.from(r.first)
	case r.name == "":
		return fmt.Errorf("%q outside of a case", line)
	case word == "from":
		return r.from(rest)
	case word == "=":
		return r.verdict(rest)
	default:
		return r.edit(line)
	}
}

func (r *reader) from(base string) error {
	if len(r.bases[base]) == 0 {
		return fmt.Errorf("no base %q", base)
	}
	r.lines, r.at = slices.Clone(r.bases[base]), 0
	return nil
}

func (r *reader) edit(line string) error {
	if times, text, ok := repeated(line); ok {
		for i := range times {
			if err := r.edit("+ " + strings.ReplaceAll(text, "%d", strconv.Itoa(i+1))); err != nil {
				return err
			}
		}
		return nil
	}
	op := line[0]
	if op == ' ' {
		line = " " + line
	}
	if len(line) < 2 || line[1] != ' ' {
		return fmt.Errorf("%q is no edit", line)
	}
	text, err := unescape(line[2:])
	if err != nil {
		return err
	}
	if op == '+' {
		r.lines = slices.Insert(r.lines, r.at, text)
		r.at++
		return nil
	}
	i := slices.Index(r.lines[r.at:], text)
	if i < 0 {
		return fmt.Errorf("the base has no %q there", text)
	}
	r.at += i
	switch op {
	case '-':
		r.lines = slices.Delete(r.lines, r.at, r.at+1)
	case ' ':
		r.at++
	default:
		return fmt.Errorf("%q is no edit", line)
	}
	return nil
}

func repeated(line string) (times int, text string, ok bool) {
	m := regexp.MustCompile(`^\+\*([0-9]+) (.*)$`).FindStringSubmatch(line)
	if m == nil {
		return 0, "", false
	}
	times, err := strconv.Atoi(m[1])
	return times, m[2], err == nil
}

// unescape gives the bytes of a line, with its line feed unless \ ends it.
func unescape(line string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			out.WriteByte(line[i])
			continue
		}
		rest := line[i+1:]
		if rest == "" {
			return out.String(), nil
		}
		if m := regexp.MustCompile(`^\(([^*]*)\*([0-9]+)\)`).FindStringSubmatch(rest); m != nil {
			times, err := strconv.Atoi(m[2])
			if err != nil {
				return "", fmt.Errorf("%q: %v", line, err)
			}
			out.WriteString(strings.Repeat(m[1], times))
			i += len(m[0])
			continue
		}
		char, _, tail, err := strconv.UnquoteChar(line[i:], 0)
		if err != nil || char > 0xff {
			return "", fmt.Errorf("%q: a bad escape", line)
		}
		out.WriteByte(byte(char))
		i = len(line) - len(tail) - 1
	}
	return out.String() + "\n", nil
}

func (r *reader) verdict(text string) error {
	c := Case{Name: r.name, Script: []byte(strings.Join(r.lines, "")), Verdict: Verdict(text)}
	if c.Verdict != Accepted && c.Verdict != None {
		m := regexp.MustCompile(`^line ([0-9]+): (.+)$`).FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("%q is no verdict", text)
		}
		line, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		c.Verdict, c.Line, c.Word = Refused, line, m[2]
	}
	r.cases = append(r.cases, c)
	r.name = ""
	return nil
}
