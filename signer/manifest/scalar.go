package manifest

import (
	"bytes"
	"fmt"
	"strings"
)

// replaceScalar writes another text where a scalar stands. indent is the column of what holds it, from
// 0: the key of a map, the dash of a list. key is nil in a list.
func (e *editor) replaceScalar(n, key *Node, holder Style, indent int, value string) ([][]edit, error) {
	if n.Kind != String && n.Kind != Literal {
		return nil, fmt.Errorf("line %d: a text is expected", n.Line)
	}
	if n.Style == LiteralB {
		return append(e.replaceLines(n, value), e.replaceBlock(n, indent, value)...), nil
	}
	if n.Style == Folded {
		return e.replaceBlock(n, indent, value), nil
	}
	end := e.scalarEnd(n, holder == Flow)
	if n.Style == Double || n.Style == Single || holder == Flow || oneLine(value) && !n.empty {
		return e.replaceInline(n, end, value)
	}
	// A plain word such as null, or nothing: a literal block takes its place.
	line, start, header := n.Line, n.off, "|"
	if n.empty && oneLine(value) && key != nil {
		text, err := quote(value)
		at := e.colon(key)
		return [][]edit{{{at, at, " " + text}}}, err
	}
	if n.empty {
		if key == nil {
			return nil, fmt.Errorf("line %d: %w", n.Line, ErrStyle)
		}
		line, start, header = key.Line, e.colon(key), " |"
		end = start
	}
	_, behind := e.lines.text(line)
	body := literal(value, indent+2, e.eol)
	if breakLen(e.f.Data[behind-1:]) == 0 {
		body = e.eol + body
	}
	return [][]edit{{{start, end, header}, {behind, behind, body}}}, nil
}

// replaceInline replaces a scalar that stands on one line. Quotes stay of the kind they are where the
// new text allows it.
func (e *editor) replaceInline(n *Node, end int, value string) ([][]edit, error) {
	text, err := quote(value)
	if err != nil || end == 0 {
		return nil, fmt.Errorf("line %d: %w", n.Line, ErrStyle)
	}
	var candidates [][]edit
	switch {
	case n.Style == Double:
		candidates = e.replaceQuoted(n, end, value)
	case n.Style == Single && oneLine(value):
		candidates = [][]edit{{{n.off, end, "'" + strings.ReplaceAll(value, "'", "''") + "'"}}}
	}
	return append(candidates, []edit{{n.off, end, text}}), nil
}

// replaceBlock replaces the lines of a literal block and keeps its header and its indentation.
func (e *editor) replaceBlock(n *Node, indent int, value string) [][]edit {
	_, first := e.lines.text(n.Line)
	end, trimmed := e.blockEnd(n.Line, indent+1)
	width := indent + 2
	for line := n.Line + 1; line <= len(e.lines.starts) && e.lines.starts[line-1] < trimmed; line++ {
		text, _ := e.lines.text(line)
		if body := strings.TrimLeft(text, " "); body != "" {
			width = len(text) - len(body)
			break
		}
	}
	body := literal(value, width, e.eol)
	if first > 0 && breakLen(e.f.Data[first-1:]) == 0 {
		body = e.eol + body
	}
	header := edit{n.off, n.off + 1, "|"}
	return [][]edit{
		{header, {first, trimmed, body}},
		{header, {first, end, body}}, // |+ counts the blank lines behind it
	}
}

// fill puts a new member into a map or list that is empty, null or not there at all.
func (e *editor) fill(holder *Node, p Pair, what nested) ([][]edit, error) {
	end := e.scalarEnd(p.Value, holder.Style == Flow)
	if p.Value.Kind == Map || p.Value.Kind == Seq {
		end = e.emptyEnd(p.Value)
	}
	start := p.Value.off
	if p.Value.empty {
		start = e.colon(p.Key)
		end = start
	}
	if end == 0 {
		return nil, fmt.Errorf("line %d: %w", p.Value.Line, ErrStyle)
	}
	if holder.Style == Flow {
		text, err := what.flow()
		if err != nil {
			return nil, err
		}
		if len(what.keys) > 0 {
			text = "{" + text + "}"
		}
		if p.Value.empty {
			text = " " + text
		}
		return [][]edit{{{start, end, text}}}, nil
	}
	for start > 0 && e.f.Data[start-1] == ' ' {
		start--
	}
	line, _ := e.lines.at(start)
	_, behind := e.lines.text(line)
	body := what.block(p.Key.Col-1+step(holder), step(holder), e.eol)
	if breakLen(e.f.Data[behind-1:]) == 0 {
		body = e.eol + body
	}
	return [][]edit{{{start, end, ""}, {behind, behind, body}}}, nil
}

// emptyEnd is the offset behind {} or [], 0 where something stands between.
func (e *editor) emptyEnd(n *Node) int {
	for i := n.off + 1; i < len(e.f.Data); i++ {
		switch c := e.f.Data[i]; {
		case c == '}' || c == ']':
			return i + 1
		case c != ' ' && c != '\n' && c != '\r' && c != '\t':
			return 0
		}
	}
	return 0
}

// colon is the offset behind the colon of a key.
func (e *editor) colon(key *Node) int {
	end := key.off + len(key.Text) // a plain key is one line, as written
	if key.Style != Plain {
		end = e.scalarEnd(key, false)
	}
	if end > len(e.f.Data) {
		return len(e.f.Data)
	}
	if i := bytes.IndexByte(e.f.Data[end:], ':'); i >= 0 {
		return end + i + 1
	}
	return len(e.f.Data)
}

// scalarEnd is the offset behind a quoted scalar or a plain one of one line; 0 where it is not found.
func (e *editor) scalarEnd(n *Node, flow bool) int {
	d := e.f.Data
	switch n.Style {
	case Double:
		for i := n.off + 1; i < len(d); i++ {
			if d[i] == '\\' {
				i++
			} else if d[i] == '"' {
				return i + 1
			}
		}
		return 0
	case Single:
		for i := n.off + 1; i < len(d); i++ {
			if d[i] != '\'' {
				continue
			}
			if i+1 >= len(d) || d[i+1] != '\'' {
				return i + 1
			}
			i++
		}
		return 0
	case Plain:
		return n.off + plainLen(string(d[n.off:]), flow)
	default:
		return 0
	}
}

// plainLen is the length of a plain scalar of one line.
func plainLen(s string, flow bool) int {
	end := len(s)
	stops := []string{"\n", "\r", " #"}
	if flow {
		stops = append(stops, ",", "}", "]")
	}
	for _, stop := range stops {
		if i := strings.Index(s[:end], stop); i >= 0 {
			end = i
		}
	}
	return len(strings.TrimRight(s[:end], " \t"))
}
