package manifest

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// oneLine tells a text that needs no block: a version, a number.
func oneLine(value string) bool { return value != "" && !strings.ContainsAny(value, "\r\n") }

// replaceLines writes a new text into a literal block and leaves alone the lines that the old and the
// new text share at their beginning and end: their indentation, and blanks on blank lines.
func (e *editor) replaceLines(n *Node, value string) [][]edit {
	was, is := strings.TrimSuffix(n.Text, "\n"), strings.TrimSuffix(value, "\n")
	if strings.HasSuffix(n.Text, "\n") != strings.HasSuffix(value, "\n") {
		return nil
	}
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	head := sharedHead(before, after)
	tail := sharedTail(before[head:], after[head:])
	first, behind := n.Line+1+head, n.Line+1+len(before)-tail
	if behind > len(e.lines.starts) {
		return nil
	}
	var b strings.Builder
	width := e.blockWidth(n, before)
	for _, line := range after[head : len(after)-tail] {
		if line != "" {
			b.WriteString(strings.Repeat(" ", width) + line)
		}
		b.WriteString(e.eol)
	}
	return [][]edit{{{e.lines.starts[first-1], e.lines.starts[behind-1], b.String()}}}
}

// blockWidth is the indentation of a literal block, told by its first line that is not blank.
func (e *editor) blockWidth(n *Node, texts []string) int {
	for i, text := range texts {
		if text != "" && n.Line+1+i <= len(e.lines.starts) {
			raw, _ := e.lines.text(n.Line + 1 + i)
			return max(len(raw)-len(text), 0)
		}
	}
	return n.Col + 1
}

func sharedHead(a, b []string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

func sharedTail(a, b []string) int {
	i := 0
	for i < min(len(a), len(b)) && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// replaceQuoted writes a new text between double quotes and leaves alone how the characters are
// written that the old and the new text share at their beginning and end.
func (e *editor) replaceQuoted(n *Node, end int, value string) [][]edit {
	raws, texts := units(string(e.f.Data[n.off+1 : end-1]))
	if raws == nil || strings.Join(texts, "") != n.Text {
		return nil
	}
	start, rest := n.off+1, value
	for len(texts) > 0 && strings.HasPrefix(rest, texts[0]) {
		start, rest = start+len(raws[0]), rest[len(texts[0]):]
		raws, texts = raws[1:], texts[1:]
	}
	stop := end - 1
	for i := len(texts) - 1; i >= 0 && strings.HasSuffix(rest, texts[i]); i-- {
		stop, rest = stop-len(raws[i]), rest[:len(rest)-len(texts[i])]
	}
	middle, err := quote(rest)
	if err != nil {
		return nil
	}
	return [][]edit{{{start, stop, middle[1 : len(middle)-1]}}}
}

// units takes the inside of a double-quoted scalar of one line apart: each character as it is written,
// and what it stands for. It gives nil for what it does not know.
func units(s string) (raws, texts []string) {
	for s != "" {
		n, text := unit(s)
		if n == 0 {
			return nil, nil
		}
		raws, texts, s = append(raws, s[:n]), append(texts, text), s[n:]
	}
	return raws, texts
}

func unit(s string) (int, string) {
	r, size := utf8.DecodeRuneInString(s)
	if r == '\n' || r == '\r' {
		return 0, ""
	}
	if r != '\\' {
		return size, s[:size]
	}
	if len(s) < 2 {
		return 0, ""
	}
	if at := strings.IndexByte(`"\/nrtbf`, s[1]); at >= 0 {
		return 2, "\"\\/\n\r\t\b\f"[at : at+1]
	}
	if s[1] != 'u' {
		return 0, ""
	}
	r = escaped(s)
	if !utf16.IsSurrogate(r) {
		return 6, string(r)
	}
	if r = utf16.DecodeRune(r, escaped(s[6:])); r == utf8.RuneError {
		return 0, ""
	}
	return 12, string(r)
}

// escaped reads \uXXXX; what is none becomes the replacement character.
func escaped(s string) rune {
	if len(s) < 6 || s[:2] != `\u` {
		return utf8.RuneError
	}
	v, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(v)
}
