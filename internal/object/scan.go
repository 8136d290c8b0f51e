package object

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// walker passes over JSON that is known to be well formed, and takes it apart without
// a copy: a review may have 12 MiB, and the API server waits.
type walker struct {
	raw []byte
	at  int
}

// member is one field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// take gives the fields of a JSON object at any depth; each object inside is held to
// rule as well, so that one name never stands there twice.
func take(raw []byte) (fields, error) {
	w := walker{raw: raw}
	all, err := w.object("")
	if err != nil {
		return nil, err
	}
	f := make(fields, len(all))
	for _, m := range all {
		f[m.name] = m.value
	}
	return f, nil
}

func (w *walker) space() {
	for w.at < len(w.raw) && (w.raw[w.at] == ' ' || w.raw[w.at] == '\t' || w.raw[w.at] == '\r' || w.raw[w.at] == '\n') {
		w.at++
	}
}

// value passes over one value and gives its bytes; name is that of the field it stands in.
func (w *walker) value(name string) (json.RawMessage, error) {
	w.space()
	start := w.at
	if w.at >= len(w.raw) {
		return nil, nil
	}
	var err error
	switch w.raw[w.at] {
	case '{':
		_, err = w.object(name)
	case '[':
		err = w.list(name)
	case '"':
		err = whole(name, w.text())
	default:
		for w.at < len(w.raw) && bytes.IndexByte([]byte(",]} \t\r\n"), w.raw[w.at]) < 0 {
			w.at++
		}
	}
	return w.raw[start:w.at], err
}

// object passes over an object and gives its fields in order.
func (w *walker) object(name string) ([]member, error) {
	var all []member
	seen := map[string]bool{}
	w.space()
	for w.at++; ; w.comma() {
		w.space()
		if w.at >= len(w.raw) || w.raw[w.at] == '}' {
			w.at++
			return all, nil
		}
		m := member{name: spelt(w.text())}
		// check: Malformed: "spec" twice: one is judged and the other stored
		if seen[m.name] {
			return nil, malformed(name, "the field %.60q stands there twice", m.name)
		}
		seen[m.name] = true
		w.space()
		w.at++ // the colon
		var err error
		if m.value, err = w.value(m.name); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

func (w *walker) list(name string) error {
	for w.at++; ; w.comma() {
		w.space()
		if w.at >= len(w.raw) || w.raw[w.at] == ']' {
			w.at++
			return nil
		}
		if _, err := w.value(name); err != nil {
			return err
		}
	}
}

func (w *walker) comma() {
	w.space()
	if w.at < len(w.raw) && w.raw[w.at] == ',' {
		w.at++
	}
}

// text passes over a string and gives it with its quotes.
func (w *walker) text() []byte {
	start := w.at
	for w.at++; w.at < len(w.raw) && w.raw[w.at] != '"'; w.at++ {
		if w.raw[w.at] == '\\' {
			w.at++
		}
	}
	w.at = min(w.at+1, len(w.raw))
	return w.raw[start:w.at]
}

// whole wants a string that every reader decodes to the same text.
func whole(name string, quoted []byte) error {
	// check: Malformed: readers put other characters in place of a byte or half a pair that is no text
	if !utf8.Valid(quoted) || halfPair(quoted) {
		return malformed(name, "is no valid UTF-8 text")
	}
	return nil
}

// halfPair reports whether a string escapes half of a surrogate pair, which Go decodes to
// U+FFFD (RFC 8259, section 8.2).
func halfPair(quoted []byte) bool {
	for at := bytes.IndexByte(quoted, '\\'); at >= 0 && at < len(quoted); at++ {
		if quoted[at] != '\\' {
			continue
		}
		unit := escaped(quoted[at:])
		if !utf16.IsSurrogate(unit) {
			at++ // what is escaped may be a backslash
			continue
		}
		const width = len(`\u0000`)
		if at+width > len(quoted) || utf16.DecodeRune(unit, escaped(quoted[at+width:])) == utf8.RuneError {
			return true
		}
		at += 2*width - 1
	}
	return false
}

// escaped gives the UTF-16 unit of the \u escape that text starts with, 0 where it starts with none.
func escaped(text []byte) rune {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(unit)
}

// spelt is the text that a string spells: "sp\u0065c" is spec.
func spelt(quoted []byte) string {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return string(quoted)
	}
	return text
}

// same reports whether two JSON values say the same, however they are written. Numbers
// are compared by their digits: as floats, large ones would be equal that are not. Levels
// bounds the depth, since each level is walked once more; deeper values count as different.
func same(a, b json.RawMessage, levels int) bool {
	a, b = bytes.TrimSpace(a), bytes.TrimSpace(b)
	if bytes.Equal(a, b) {
		return true
	}
	if levels <= 0 || len(a) == 0 || len(b) == 0 || a[0] != b[0] {
		return false
	}
	switch a[0] {
	case '"':
		return spelt(a) == spelt(b)
	case '{':
		return sameObjects(a, b, levels-1)
	case '[':
		was, wasErr := elements(a)
		is, isErr := elements(b)
		if wasErr != nil || isErr != nil || len(was) != len(is) {
			return false
		}
		for i := range was {
			if !same(was[i], is[i], levels-1) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func sameObjects(a, b json.RawMessage, levels int) bool {
	was, wasErr := take(a)
	is, isErr := take(b)
	if wasErr != nil || isErr != nil || len(was) != len(is) {
		return false
	}
	for name, value := range was {
		if other, ok := is[name]; !ok || !same(value, other, levels) {
			return false
		}
	}
	return true
}

// elements gives the values of a list.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	w := walker{raw: raw}
	var all []json.RawMessage
	for w.at++; ; w.comma() {
		w.space()
		if w.at >= len(raw) || raw[w.at] == ']' {
			return all, nil
		}
		value, err := w.value("")
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
}
