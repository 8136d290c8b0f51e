package mark

import (
	"fmt"
	"regexp"
	"strings"
)

// Mark is one marked check.
type Mark struct {
	File  string   // path below the root, with slashes
	Line  int      // of the mark, from 1
	Codes []string // reasons (Go) or exit codes (sh)
	Why   string   // the attack it stops

	start, end  int // bytes of the condition or of the line
	replacement func(old string) string
}

// String names the mark as a compiler would name its place.
func (m Mark) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", m.File, m.Line, strings.Join(m.Codes, ","), m.Why)
}

// Mutant returns source without the check.
func (m Mark) Mutant(source []byte) []byte {
	old := string(source[m.start:m.end])
	return []byte(string(source[:m.start]) + m.replacement(old) + string(source[m.end:]))
}

// Problem is a mark that cannot be used as it stands.
type Problem struct {
	File string
	Line int
	What string
}

// String is the problem with its place.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) }

// Found is what a file or a tree holds.
type Found struct {
	Marks    []Mark
	Problems []Problem
}

func (f *Found) add(other Found) {
	f.Marks = append(f.Marks, other.Marks...)
	f.Problems = append(f.Problems, other.Problems...)
}

func (f *Found) problem(file string, line int, format string, args ...any) {
	f.Problems = append(f.Problems, Problem{file, line, fmt.Sprintf(format, args...)})
}

// parse reads the text after the comment sign. isMark is false for other comments.
func parse(comment string) (codes []string, why string, isMark bool, err error) {
	begins := regexp.MustCompile(`^\s*[Cc]heck\s*:`)
	if !begins.MatchString(comment) {
		return nil, "", false, nil
	}
	whole := regexp.MustCompile(`^ check: ([A-Za-z0-9]+(?:,[A-Za-z0-9]+)*): (\S.*)$`)
	parts := whole.FindStringSubmatch(comment)
	if parts == nil {
		return nil, "", true, fmt.Errorf("malformed mark %q, want \"check: CODE[,CODE]: what attack it stops\"", strings.TrimSpace(comment))
	}
	return strings.Split(parts[1], ","), parts[2], true, nil
}
