package canonical

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// scanner passes over JSON that is known to be well formed, without making a tree of
// it: of a few bytes of document a tree makes a hundred of memory.
type scanner struct {
	text []byte
	at   int
}

// token gives the next string, number, word or punctuation mark.
func (s *scanner) token() []byte {
	s.space()
	start := s.at
	switch s.text[s.at] {
	case '"':
		s.quoted()
	case '{', '}', '[', ']', ':', ',':
		s.at++
	default:
		for s.at < len(s.text) && bytes.IndexByte([]byte("{}[]:,\" \t\r\n"), s.text[s.at]) < 0 {
			s.at++
		}
	}
	return s.text[start:s.at]
}

// more reports whether another element follows, and steps over the comma before it, or over the end.
func (s *scanner) more(end byte) bool {
	s.space()
	switch s.text[s.at] {
	case end:
		s.at++
		return false
	case ',':
		s.at++
	}
	return true
}

func (s *scanner) space() {
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n"), s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) quoted() {
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// unquote is the text that a string spells, as encoding/json reads it.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return nil // the document is well formed, and so is each string of it
	}
	return []byte(text)
}
