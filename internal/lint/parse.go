package lint

import (
	"bytes"
	"errors"
	"io"
	"runtime"

	"mvdan.cc/sh/v3/syntax"
)

var (
	errTooLarge = errors.New("the script is too large to be read")
	errTooDeep  = errors.New("the script is nested too deeply to be read")
)

const (
	// maxFrames bounds the depth of calls while parsing. The parser takes about ten a level.
	maxFrames = 4000
	// maxDepth bounds the depth of the tree, where chains of commands lean to one side: room for about
	// 150 levels of nesting, or 250 commands joined by && or |.
	maxDepth = 600
	// chunk is what the parser gets at once: it can go no deeper than that between two looks at the stack.
	chunk = 256
)

// parse reads a script as bash. Everything that walks the tree afterwards is recursive, so what is
// nested too deeply is refused here.
func parse(text []byte) (*syntax.File, error) {
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)).Parse(&shallow{rest: text}, "")
	if err != nil {
		return nil, err
	}
	if depth(file) > maxDepth {
		return nil, errTooDeep
	}
	return file, nil
}

// shallow feeds the parser, which recurses for each level of nesting without a limit of its own, and
// stops it when the stack has become deep: a stack overflow would end the whole program.
type shallow struct{ rest []byte }

func (s *shallow) Read(p []byte) (int, error) {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return 0, errTooDeep
	}
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(chunk, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

// depth is how deep a tree is, or a bit more than maxDepth where it is deeper than that.
func depth(file *syntax.File) int {
	level, deepest := 0, 0
	syntax.Walk(file, func(n syntax.Node) bool {
		if n == nil {
			level--
			return true
		}
		if level+1 > deepest {
			deepest = level + 1
		}
		if level >= maxDepth {
			return false
		}
		level++
		return true
	})
	return deepest
}

// parseError is the rule for scripts that cannot be read.
func parseError(s *source) []hit {
	if s.parseErr == nil {
		return nil
	}
	h := hit{level: Error, message: s.parseErr.Error(), hint: "bash -n SCRIPT"}
	if e, ok := errors.AsType[syntax.ParseError](s.parseErr); ok {
		h.start, h.message = int(e.Pos.Offset()), "the script cannot be read as bash: "+e.Text
	} else if e, ok := errors.AsType[syntax.LangError](s.parseErr); ok {
		h.start, h.message = int(e.Pos.Offset()), "the script cannot be read as bash: "+e.Feature
	} else {
		h.hint = "make it smaller, or split it up"
	}
	h.start = min(h.start, len(s.text))
	if _, h.end = s.line(h.start); bytes.HasPrefix(s.text[h.start:], []byte("\n")) {
		h.end = h.start
	}
	return []hit{h}
}
