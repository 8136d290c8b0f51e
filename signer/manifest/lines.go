package manifest

import (
	"bytes"
	"sort"
	"unicode/utf8"
)

// lines maps between byte offsets and the lines and columns of a YAML reader, which counts columns in
// characters and takes CR, LF, CR LF, NEL, LS and PS as line breaks (YAML 1.1, section 4.2).
//
// Nodes are asked for in the order of the text, so it goes on from the last answer: counting each from
// the start of its line would take minutes for a long line.
type lines struct {
	data   []byte
	starts []int
	last   mark
}

// mark is a place in the text, in bytes and in characters of its line.
type mark struct{ line, col, off int }

func newLines(data []byte) *lines {
	l := &lines{data: data, starts: []int{0}}
	for i := 0; i < len(data); {
		n := breakLen(data[i:])
		if n == 0 {
			i++
			continue
		}
		i += n
		l.starts = append(l.starts, i)
	}
	return l
}

// breakLen is the length of the line break at the start of b, or 0.
func breakLen(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("\r\n")):
		return 2
	case b[0] == '\n', b[0] == '\r':
		return 1
	case bytes.HasPrefix(b, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(b, []byte("\u2028")), bytes.HasPrefix(b, []byte("\u2029")):
		return 3
	}
	return 0
}

// offset gives the byte offset of a line and column, both from 1.
func (l *lines) offset(line, col int) int {
	if line < 1 || line > len(l.starts) {
		return len(l.data)
	}
	from := l.from(line, func(m mark) bool { return m.col <= col })
	for ; from.col < col && from.off < len(l.data); from.col++ {
		_, n := utf8.DecodeRune(l.data[from.off:])
		from.off += n
	}
	l.last = from
	return from.off
}

// at gives line and column of a byte offset, both from 1.
func (l *lines) at(off int) (line, col int) {
	line = sort.SearchInts(l.starts, off+1)
	from := l.from(line, func(m mark) bool { return m.off <= off })
	from.col += utf8.RuneCount(l.data[from.off:off])
	from.off = off
	l.last = from
	return line, from.col
}

// from is where counting may begin on a line: at the last answer if it lies before, else at its start.
func (l *lines) from(line int, before func(mark) bool) mark {
	if l.last.line == line && before(l.last) {
		return l.last
	}
	return mark{line, 1, l.starts[line-1]}
}

// text gives a line without its break, and the offset behind the break.
func (l *lines) text(line int) (string, int) {
	start, next := l.starts[line-1], len(l.data)
	if line < len(l.starts) {
		next = l.starts[line]
	}
	end := next
	for i := start; i < next; i++ {
		if breakLen(l.data[i:]) > 0 {
			end = i
			break
		}
	}
	return string(l.data[start:end]), next
}
