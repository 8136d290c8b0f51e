package lint

import (
	"bytes"
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// source is a script with what the rules ask of it.
type source struct {
	text       []byte
	phase      script.Phase
	warrant    *warrant.Warrant // nil: the script has none, or none that can be read
	warrantErr error

	file     *syntax.File // nil where the script cannot be parsed
	parseErr error

	places *places
	facts  *facts
	flow   *flow
}

// hit is a finding before its place is counted out.
type hit struct {
	rule       string
	level      Severity
	start, end int // byte offsets
	message    string
	hint       string
}

func read(text []byte, phase script.Phase) *source {
	s := &source{text: text, phase: phase}
	// What is over the limit is refused everywhere, and work must be bounded.
	if len(text) > 4*script.MaxCharacters {
		s.text, s.places, s.parseErr = nil, newPlaces(nil), errTooLarge
		return s
	}
	s.places = newPlaces(text)
	if s.warrant, s.warrantErr = warrant.Find(text); s.warrantErr != nil {
		s.warrant = nil
	}
	if s.file, s.parseErr = parse(text); s.parseErr != nil {
		s.file = nil
		return s
	}
	s.facts = gather(s.file)
	s.facts.secrets = secretNames(s)
	s.flow = follow(s.file, s.facts)
	return s
}

// at points at a node of the tree.
func at(n syntax.Node) (start, end int) { return int(n.Pos().Offset()), int(n.End().Offset()) }

// on makes a hit at a node.
func on(n syntax.Node, level Severity, message, hint string) hit {
	start, end := at(n)
	return hit{level: level, start: start, end: end, message: message, hint: hint}
}

// line gives the bounds of the line that holds an offset, without its end.
func (s *source) line(offset int) (start, end int) {
	start = bytes.LastIndexByte(s.text[:offset], '\n') + 1
	end = len(s.text)
	if i := bytes.IndexByte(s.text[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	return start, end
}

// onLine makes a hit of the whole line that starts with a prefix, or of the first line.
func (s *source) onLine(prefix string, level Severity, message, hint string) hit {
	offset := 0
	if !bytes.HasPrefix(s.text, []byte(prefix)) {
		if i := bytes.Index(s.text, []byte("\n"+prefix)); i >= 0 {
			offset = i + 1
		}
	}
	start, end := s.line(offset)
	return hit{level: level, start: start, end: end, message: message, hint: hint}
}

// lineOf gives the number of the line where a node starts.
func (s *source) lineOf(n syntax.Node) int {
	line, _ := s.places.at(int(n.Pos().Offset()))
	return line
}

// lineNumbered gives the bounds of a line by its number from 1; of the last one where there are fewer.
func (s *source) lineNumbered(number string) (start, end int) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(s.places.starts) {
		n = len(s.places.starts)
	}
	return s.line(s.places.starts[n-1])
}
