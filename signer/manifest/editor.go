package manifest

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// editor finds the bytes to replace. It may be wrong about an odd style: every candidate it gives is
// read back before it is used.
type editor struct {
	f     *File
	lines *lines
	eol   string
}

func eolOf(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func sortedPairs(pairs []Pair) []Pair {
	sorted := append([]Pair(nil), pairs...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Key.Text < sorted[j].Key.Text })
	return sorted
}

// set gives candidates for a text at a path below a map.
func (e *editor) set(n *Node, path []string, value string) ([][]edit, error) {
	if n.Kind != Map {
		return nil, fmt.Errorf("line %d: a map is expected", n.Line)
	}
	key, rest := path[0], path[1:]
	for _, p := range n.Pairs {
		if p.Key.Text != key {
			continue
		}
		switch {
		case len(rest) == 0:
			return e.replaceScalar(p.Value, p.Key, n.Style, p.Key.Col-1, value)
		case p.Value.IsNull(), p.Value.Kind == Map && len(p.Value.Pairs) == 0:
			return e.fill(n, p, nested{keys: rest, value: value})
		default:
			return e.set(p.Value, rest, value)
		}
	}
	return e.insertPair(n, nested{keys: path, value: value})
}

// setItem gives candidates for an item of a list.
func (e *editor) setItem(n *Node, path []string, at int, value string) ([][]edit, error) {
	list := n.Path(path...)
	if list.IsNull() || list.Kind == Seq && len(list.Items) == 0 {
		return e.newList(n, path, value)
	}
	if list.Kind != Seq || at > len(list.Items) {
		return nil, fmt.Errorf("line %d: a list is expected", list.Line)
	}
	if at < len(list.Items) {
		return e.replaceScalar(list.Items[at], nil, list.Style, list.Col-1, value)
	}
	if list.Style == Flow {
		return e.insertFlow(list, list.Items[len(list.Items)-1], nested{list: true, value: value})
	}
	text := nested{list: true, value: value}.block(list.Col-1, 2, e.eol)
	return e.insertBlock(list.Items[len(list.Items)-1].Line, list.Col-1, text), nil
}

func (e *editor) newList(n *Node, path []string, value string) ([][]edit, error) {
	parent := n.Path(path[:len(path)-1]...)
	if parent == nil || parent.Kind != Map {
		return nil, fmt.Errorf("no map %s", strings.Join(path[:len(path)-1], "."))
	}
	what := nested{keys: path[len(path)-1:], list: true, value: value}
	for _, p := range parent.Pairs {
		if p.Key.Text == what.keys[0] {
			what.keys = nil
			return e.fill(parent, p, what)
		}
	}
	return e.insertPair(parent, what)
}

// nested is a value below zero or more new maps; list puts it into a list of its own.
type nested struct {
	keys  []string
	list  bool
	value string
}

// block writes it by indentation, from the given column on.
func (w nested) block(indent, step int, eol string) string {
	var b strings.Builder
	for i, key := range w.keys {
		b.WriteString(strings.Repeat(" ", indent) + key + ":")
		if i < len(w.keys)-1 || w.list {
			b.WriteString(eol)
			indent += step
		}
	}
	if w.list {
		b.WriteString(strings.Repeat(" ", indent) + "-")
	}
	if oneLine(w.value) {
		text, err := quote(w.value)
		if err == nil {
			b.WriteString(" " + text + eol)
			return b.String()
		}
	}
	b.WriteString(" |" + eol + literal(w.value, indent+step, eol))
	return b.String()
}

// flow writes it in brackets.
func (w nested) flow() (string, error) {
	text, err := quote(w.value)
	if err != nil {
		return "", err
	}
	if w.list {
		text = "[" + text + "]"
	}
	for i := len(w.keys) - 1; i >= 0; i-- {
		key, err := quote(w.keys[i])
		if err != nil {
			return "", err
		}
		text = key + ": " + text
		if i > 0 {
			text = "{" + text + "}"
		}
	}
	return text, nil
}

// literal writes the lines of a literal block.
func literal(value string, indent int, eol string) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(value, "\n"), "\n") {
		b.WriteString(strings.Repeat(" ", indent) + line + eol)
	}
	return b.String()
}

// step is the indentation that a map uses for what stands below its keys.
func step(n *Node) int {
	for _, p := range n.Pairs {
		if p.Value.Kind == Map && p.Value.Style == Block && len(p.Value.Pairs) > 0 {
			return max(p.Value.Col-n.Col, 1)
		}
	}
	return 2
}

func (e *editor) insertPair(n *Node, what nested) ([][]edit, error) {
	if n.Style == Flow {
		var last *Node
		if len(n.Pairs) > 0 {
			last = n.Pairs[len(n.Pairs)-1].Value
		}
		return e.insertFlow(n, last, what)
	}
	text := what.block(n.Col-1, step(n), e.eol)
	last := n.Pairs[len(n.Pairs)-1].Key
	candidates := e.insertBlock(last.Line, n.Col-1, text)
	// A last value that reaches to the end of a file without a final newline would change.
	at := e.lines.starts[last.Line-1]
	if strings.TrimSpace(string(e.f.Data[at:last.off])) == "" {
		candidates = append(candidates, []edit{{at, at, text}})
	}
	return candidates, nil
}

// insertBlock puts text behind the block that holds the given line and is indented by indent.
func (e *editor) insertBlock(line, indent int, text string) [][]edit {
	end, trimmed := e.blockEnd(line, indent)
	var candidates [][]edit
	for _, at := range []int{trimmed, end} {
		t := text
		if at > 0 && breakLen(e.f.Data[at-1:]) == 0 {
			t = e.eol + t
		}
		candidates = append(candidates, []edit{{at, at, t}})
	}
	return candidates
}

// blockEnd gives the end of the lines after line that are blank or indented by indent or more, with
// and without blank lines at the end.
func (e *editor) blockEnd(line, indent int) (end, trimmed int) {
	_, end = e.lines.text(line)
	trimmed = end
	for next := line + 1; next <= len(e.lines.starts); next++ {
		text, behind := e.lines.text(next)
		if strings.TrimSpace(text) == "" {
			end = behind
			continue
		}
		if len(text)-len(strings.TrimLeft(text, " ")) < indent || indent == 0 && strings.HasPrefix(text, "---") {
			break
		}
		end, trimmed = behind, behind
	}
	return end, trimmed
}

// insertFlow adds a member to a collection in brackets: behind the last one where the reader knows its
// end (JSON), else in front.
func (e *editor) insertFlow(n, last *Node, what nested) ([][]edit, error) {
	text, err := what.flow()
	if err != nil {
		return nil, err
	}
	if what.list && len(what.keys) == 0 && last != nil {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	}
	if last == nil {
		return [][]edit{{{n.off + 1, n.off + 1, text}}}, nil
	}
	end := last.end
	if end == 0 && last.Kind == String {
		end = e.scalarEnd(last, true)
	}
	if end == 0 {
		return [][]edit{{{n.off + 1, n.off + 1, text + ", "}}}, nil
	}
	return [][]edit{{{end, end, "," + e.gap(n) + text}}}, nil
}

// gap is the white space between a bracket and its first member, " " where there is none.
func (e *editor) gap(n *Node) string {
	i := n.off + 1
	for i < len(e.f.Data) && bytes.IndexByte([]byte(" \t\r\n"), e.f.Data[i]) >= 0 {
		i++
	}
	if i == n.off+1 {
		return " "
	}
	return string(e.f.Data[n.off+1 : i])
}
