package transcript

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// tail keeps the last limit bytes.
type tail struct {
	limit int
	buf   []byte
	lost  bool
}

func (t *tail) write(p []byte) {
	if over := len(p) - t.limit; over > 0 {
		p = p[over:]
		t.buf, t.lost = t.buf[:0], true
	}
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.lost = true
	}
}

// printable is the text of b. Control characters but line feed and tab, and bytes
// that are no UTF-8, become the replacement character: they could move the cursor of
// whoever reads it, or not be stored at all. Of a text that isCut the rest of a
// character whose beginning is gone is left out.
func printable(b []byte, isCut bool) string {
	var out strings.Builder
	for isCut && len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if r == utf8.RuneError || (r != '\n' && r != '\t' && !unicode.IsPrint(r)) {
			r = utf8.RuneError
		}
		out.WriteRune(r)
	}
	return out.String()
}
