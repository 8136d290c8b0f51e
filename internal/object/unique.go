package object

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// unique refuses JSON in which an object has one name twice: readers differ on
// which of the two counts. The text is JSON already (json.Unmarshal took it), so
// that one pass over its bytes is enough, whatever its size.
func unique(raw []byte) error {
	w := walker{raw: raw}
	return w.value("")
}

// walker passes over JSON that is known to be well formed.
type walker struct {
	raw []byte
	at  int
}

func (w *walker) space() {
	for w.at < len(w.raw) && bytes.IndexByte([]byte(" \t\r\n"), w.raw[w.at]) >= 0 {
		w.at++
	}
}

// value passes over one value; name is that of the field it stands in.
func (w *walker) value(name string) error {
	w.space()
	if w.at >= len(w.raw) {
		return nil
	}
	switch w.raw[w.at] {
	case '{':
		return w.object(name)
	case '[':
		return w.list(name)
	case '"':
		w.text()
	default:
		for w.at < len(w.raw) && bytes.IndexByte([]byte(",]} \t\r\n"), w.raw[w.at]) < 0 {
			w.at++
		}
	}
	return nil
}

func (w *walker) object(name string) error {
	seen := map[string]bool{}
	for w.at++; ; {
		w.space()
		if w.at >= len(w.raw) || w.raw[w.at] == '}' {
			w.at++
			return nil
		}
		key := plain(w.text())
		// check: Malformed: "spec" twice: one is judged and the other stored
		if seen[key] {
			return malformed(name, "the field %.60q stands there twice", key)
		}
		seen[key] = true
		w.space()
		w.at++ // the colon
		if err := w.value(key); err != nil {
			return err
		}
		w.comma()
	}
}

func (w *walker) list(name string) error {
	for w.at++; ; {
		w.space()
		if w.at >= len(w.raw) || w.raw[w.at] == ']' {
			w.at++
			return nil
		}
		if err := w.value(name); err != nil {
			return err
		}
		w.comma()
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

// plain is the name that a string spells: "sp\u0065c" is spec.
func plain(quoted []byte) string {
	inner := bytes.TrimSuffix(bytes.TrimPrefix(quoted, []byte{'"'}), []byte{'"'})
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(inner)
	}
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		return string(inner)
	}
	return name
}
