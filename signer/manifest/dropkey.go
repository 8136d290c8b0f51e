package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// DropKey takes the member at path out of its map, which keeps at least one other. Where there is no such
// member the file stays as it is. What is left is read again, and nothing else may differ.
func (f *File) DropKey(i int, path ...string) (*File, error) {
	target, err := f.target(i)
	if err != nil {
		return nil, err
	}
	name := strings.Join(path, ".")
	key := path[len(path)-1]
	holder := target.Node.Path(path[:len(path)-1]...)
	if holder.Get(key) == nil {
		return f, nil
	}
	if len(holder.Pairs) == 1 {
		return nil, fmt.Errorf("editing %s: a map with another member is expected", name)
	}
	e := &editor{f: f, lines: newLines(f.Data), eol: eolOf(f.Data)}
	change := func(n *Node, _ string) {
		m := n.Path(path[:len(path)-1]...)
		m.Pairs = slices.DeleteFunc(m.Pairs, func(p Pair) bool { return p.Key.Text == key })
	}
	at := slices.IndexFunc(holder.Pairs, func(p Pair) bool { return p.Key.Text == key })
	return f.firstGood(e.dropPair(holder, at), target, change, "", name)
}

func (e *editor) dropPair(holder *Node, at int) [][]edit {
	key := holder.Pairs[at].Key
	if holder.Style == Block {
		start := e.lines.starts[key.Line-1]
		end, trimmed := e.blockEnd(key.Line, key.Col)
		return [][]edit{{{start, trimmed, ""}}, {{start, end, ""}}}
	}
	if at == 0 {
		return [][]edit{{{key.off, holder.Pairs[1].Key.off, ""}}}
	}
	return [][]edit{{{e.flowEnd(holder.Pairs[at-1].Value), e.flowEnd(holder.Pairs[at].Value), ""}}}
}
