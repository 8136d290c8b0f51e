package statement

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// header is what the first line starts with.
const header = "hostwarrant-statement: v1 "

// maxLines bounds the lines of a statement: 64 KiB hold fewer useful ones.
const maxLines = 1024

var number = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)

// reader hands out the lines of a statement, each as a word and what stands behind it.
type reader struct {
	lines []string
	next  int // index of the line that comes next; its number for people is one more
}

// newReader checks the bytes and splits them.
func newReader(text []byte) (*reader, error) {
	// check: StatementRejected: work before verification must be bounded
	if len(text) > MaxBytes {
		return nil, rejected("is %d bytes long, more than %d", len(text), MaxBytes)
	}
	// check: StatementRejected: other bytes are read, or shown, in different ways by different tools
	if at := bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < 0x20 || r > 0x7e) }); at >= 0 {
		return nil, rejected("line %d holds a byte that is neither LF nor printable ASCII", 1+bytes.Count(text[:at], []byte("\n")))
	}
	// check: StatementRejected: a last line without LF is read by some tools and not by others
	if !bytes.HasSuffix(text, []byte("\n")) {
		return nil, rejected("does not end with a line break")
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	// check: StatementRejected: work before verification must be bounded
	if len(lines) > maxLines {
		return nil, rejected("has %d lines, more than %d", len(lines), maxLines)
	}
	for i, line := range lines {
		// check: StatementRejected: tools that split words see what tools that compare bytes do not
		if line == "" || line[0] == ' ' || strings.HasSuffix(line, " ") || strings.Contains(line, "  ") {
			return nil, at(i, "words have one space between them, and none around")
		}
	}
	return &reader{lines: lines}, nil
}

// at makes an error about the line with that index.
func at(line int, format string, args ...any) *decision.Error {
	e := rejected(format, args...)
	e.What = "line " + strconv.Itoa(line+1) + ": " + e.What
	return e
}

// fail makes an error about the line that was handed out last.
func (r *reader) fail(format string, args ...any) error { return at(r.next-1, format, args...) }

// is reports whether the next line starts with the word.
func (r *reader) is(word string) bool {
	return r.next < len(r.lines) && (r.lines[r.next] == word || strings.HasPrefix(r.lines[r.next], word+" "))
}

// take hands out what stands behind the word on the next line, which must start with it.
func (r *reader) take(word string) (string, error) {
	// check: StatementRejected: a fact that is missing, or somewhere else, must not be guessed
	if !r.is(word) || r.lines[r.next] == word {
		return "", at(min(r.next, len(r.lines)-1), "here stands a line %q and its value", word)
	}
	value := strings.TrimPrefix(r.lines[r.next], word+" ")
	r.next++
	return value, nil
}

// all hands out every following line with the word.
func (r *reader) all(word string, each func(value string) error) error {
	for r.is(word) {
		value, err := r.take(word)
		if err != nil {
			return err
		}
		if err := each(value); err != nil {
			return err
		}
	}
	return nil
}

// number hands out a number with the word.
func (r *reader) number(word string) (int64, error) {
	value, err := r.take(word)
	if err != nil {
		return 0, err
	}
	return r.parseNumber(value)
}

func (r *reader) parseNumber(value string) (int64, error) {
	// check: StatementRejected: 007, +7 and 0x7 are read as other numbers elsewhere
	if !number.MatchString(value) {
		return 0, r.fail("%.40q is not a decimal number of at most 15 digits", value)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, r.fail("%.40q is not a number", value)
	}
	return n, nil
}

// end wants the last line.
func (r *reader) end() error {
	// check: StatementRejected: text behind the end would be signed and not read
	if r.next != len(r.lines)-1 || r.lines[r.next] != "end" {
		return at(min(r.next, len(r.lines)-1), "here ends the statement, with a line %q and nothing behind it", "end")
	}
	return nil
}
