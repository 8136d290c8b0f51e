package manifest

import (
	"fmt"
	"strings"
)

// DropItem takes item number at out of the list at path, which keeps at least one other item. What is left
// is read again, and nothing else may differ.
func (f *File) DropItem(i int, path []string, at int) (*File, error) {
	target, err := f.target(i)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s[%d]", strings.Join(path, "."), at)
	list := target.Node.Path(path...)
	if list == nil || list.Kind != Seq || at < 0 || at >= len(list.Items) || len(list.Items) == 1 {
		return nil, fmt.Errorf("editing %s: a list with that item and another is expected", name)
	}
	e := &editor{f: f, lines: newLines(f.Data), eol: eolOf(f.Data)}
	change := func(n *Node, _ string) {
		l := n.Path(path...)
		l.Items = append(l.Items[:at:at], l.Items[at+1:]...)
	}
	return f.firstGood(e.dropItem(list, at), target, change, "", name)
}

func (e *editor) dropItem(list *Node, at int) [][]edit {
	item := list.Items[at]
	if list.Style == Block {
		start := e.lines.starts[item.Line-1]
		end, trimmed := e.blockEnd(item.Line, list.Col)
		return [][]edit{{{start, trimmed, ""}}, {{start, end, ""}}}
	}
	if at == 0 {
		return [][]edit{{{item.off, list.Items[1].off, ""}}}
	}
	return [][]edit{{{e.flowEnd(list.Items[at-1]), e.flowEnd(item), ""}}}
}

// flowEnd is the offset behind a text in brackets.
func (e *editor) flowEnd(n *Node) int {
	if n.end > 0 {
		return n.end
	}
	return e.scalarEnd(n, true)
}
