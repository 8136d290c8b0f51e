package fragment_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is a JSON reader and writer of its own, for the second implementation in
// oracle_test.go: it keeps the order of names and sees names that stand twice.

type (
	numeral string // a number as it is written
	entry   struct {
		name  string
		value any
	}
	record []entry // an object
)

var errJSON = errors.New("not JSON")

// get is the last field of a name.
func (r record) get(name string) (any, bool) {
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].name == name {
			return r[i].value, true
		}
	}
	return nil, false
}

// of is the field of a name that is an object.
func (r record) of(name string) record {
	v, _ := r.get(name)
	return as[record](v)
}

// as gives a value as one of a type, the type's zero value where it is another.
func as[T any](v any) T {
	if of, ok := v.(T); ok {
		return of
	}
	var zero T
	return zero
}

type reader struct {
	s     string
	depth int
}

func readJSON(text string) (any, error) {
	r := &reader{s: text}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.blank(); r.s != "" {
		return nil, errJSON
	}
	return v, nil
}

func (r *reader) blank() { r.s = strings.TrimLeft(r.s, " \t\r\n") }

func (r *reader) take(literal string) bool {
	r.blank()
	rest, ok := strings.CutPrefix(r.s, literal)
	if ok {
		r.s = rest
	}
	return ok
}

func (r *reader) value() (any, error) {
	switch {
	case r.take("null"):
		return nil, nil
	case r.take("true"):
		return true, nil
	case r.take("false"):
		return false, nil
	case r.take(`"`):
		return r.text()
	case r.take("["):
		return r.deeper(r.list)
	case r.take("{"):
		return r.deeper(r.object)
	default:
		return r.number()
	}
}

// deeper reads a list or an object, as deep as encoding/json goes.
func (r *reader) deeper(read func() (any, error)) (any, error) {
	if r.depth++; r.depth > 10000 {
		return nil, errJSON
	}
	defer func() { r.depth-- }()
	return read()
}

func (r *reader) list() (any, error) {
	list := []any{}
	if r.take("]") {
		return list, nil
	}
	for {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if r.take("]") {
			return list, nil
		}
		if !r.take(",") {
			return nil, errJSON
		}
	}
}

func (r *reader) object() (any, error) {
	object := record{}
	if r.take("}") {
		return object, nil
	}
	for {
		if !r.take(`"`) {
			return nil, errJSON
		}
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if !r.take(":") {
			return nil, errJSON
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		object = append(object, entry{name, v})
		if r.take("}") {
			return object, nil
		}
		if !r.take(",") {
			return nil, errJSON
		}
	}
}

func (r *reader) number() (any, error) {
	n := 0
	digits := func() bool {
		from := n
		for n < len(r.s) && r.s[n] >= '0' && r.s[n] <= '9' {
			n++
		}
		return n > from
	}
	has := func(set string) bool {
		ok := n < len(r.s) && strings.IndexByte(set, r.s[n]) >= 0
		if ok {
			n++
		}
		return ok
	}
	has("-")
	if !has("0") && !digits() {
		return nil, errJSON
	}
	if has(".") && !digits() {
		return nil, errJSON
	}
	if has("eE") {
		has("+-")
		if !digits() {
			return nil, errJSON
		}
	}
	text := r.s[:n]
	r.s = r.s[n:]
	return numeral(text), nil
}

// text reads a string from behind its first quote.
func (r *reader) text() (string, error) {
	var out strings.Builder
	for {
		c, size := utf8.DecodeRuneInString(r.s)
		switch {
		case size == 0 || c < 0x20:
			return "", errJSON
		case c == '"':
			r.s = r.s[1:]
			return out.String(), nil
		case c == '\\':
			c, ok := r.escape()
			if !ok {
				return "", errJSON
			}
			out.WriteRune(c)
		default:
			out.WriteRune(c) // U+FFFD for a byte that is no UTF-8
			r.s = r.s[size:]
		}
	}
}

func (r *reader) escape() (rune, bool) {
	if len(r.s) < 2 {
		return 0, false
	}
	if i := strings.IndexByte(`"\/bfnrt`, r.s[1]); i >= 0 {
		r.s = r.s[2:]
		return rune("\"\\/\b\f\n\r\t"[i]), true
	}
	c, ok := r.unit()
	if !ok || !utf16.IsSurrogate(c) {
		return c, ok
	}
	rest := r.s
	if low, ok := r.unit(); ok {
		if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
			return pair, true
		}
	}
	r.s = rest // what follows a half is read by itself
	return utf8.RuneError, true
}

func (r *reader) unit() (rune, bool) {
	if len(r.s) < 6 || r.s[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(r.s[2:6], 16, 16)
	if err != nil || strings.ContainsAny(r.s[2:6], "+-_") {
		return 0, false
	}
	r.s = r.s[6:]
	return rune(n), true
}

// quote writes a string as the page has it.
func quote(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteRune(c)
		case strings.ContainsRune("\b\f\n\r\t", c):
			out.WriteByte('\\')
			out.WriteByte("bfnrt"[strings.IndexRune("\b\f\n\r\t", c)])
		case c < 0x20 || strings.ContainsRune("<>&\u2028\u2029", c):
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteRune(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
