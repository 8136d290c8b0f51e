package script

import (
	"bytes"
	"fmt"
)

// maxIndent bounds the indentations that SpaceChange undoes; deeper YAML is rare.
const maxIndent = 16

// SpaceChange finds out whether got differs from the signed bytes only by white
// space that an editor or a template adds: it offers got with that undone to
// matches, as NewlineChange does. It returns what happened, or "".
//
// It only words a refusal: damaged bytes are refused either way.
func SpaceChange(got []byte, matches func([]byte) bool) string {
	lines := bytes.Split(got, []byte("\n"))
	// What indents a text often leaves a last line of blanks behind it.
	signed := func(text []byte) bool {
		return matches(text) || matches(append(bytes.TrimRight(text, "\n"), '\n'))
	}
	if at, stripped := withoutTrailing(lines); at > 0 && signed(stripped) {
		return fmt.Sprintf("spaces were added at the end of line %d", at)
	}
	if n := indentation(lines); n > 0 && signed(dedented(lines, n)) {
		return fmt.Sprintf("every line was indented by %d", n)
	}
	for n := 1; n <= maxIndent; n++ {
		if matches(indentedBy(lines, n)) {
			return fmt.Sprintf("every line lost its indentation of %d", n)
		}
	}
	return ""
}

// withoutTrailing strips blanks at line ends, and gives the first such line from 1, or 0.
func withoutTrailing(lines [][]byte) (first int, text []byte) {
	stripped := make([][]byte, len(lines))
	for i, line := range lines {
		stripped[i] = bytes.TrimRight(line, " \t")
		if first == 0 && len(stripped[i]) < len(line) {
			first = i + 1
		}
	}
	return first, bytes.Join(stripped, []byte("\n"))
}

// indentation is how many spaces all lines that are not empty begin with.
func indentation(lines [][]byte) int {
	least := -1
	for _, line := range lines {
		body := bytes.TrimLeft(line, " ")
		if n := len(line) - len(body); len(line) > 0 && (least < 0 || n < least) {
			least = n
		}
	}
	return max(least, 0)
}

func dedented(lines [][]byte, n int) []byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		out[i] = line[min(n, len(line)):]
	}
	return bytes.Join(out, []byte("\n"))
}

func indentedBy(lines [][]byte, n int) []byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		if len(line) > 0 {
			out[i] = append(bytes.Repeat([]byte(" "), n), line...)
		}
	}
	return bytes.Join(out, []byte("\n"))
}
