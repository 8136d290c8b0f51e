package manifest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrStyle is returned by Set and SetItem when a value is written in a way that cannot be edited
// without changing other bytes.
var ErrStyle = errors.New("written in a style that cannot be edited in place")

// edit replaces data[start:end].
type edit struct {
	start, end int
	text       string
}

func apply(data []byte, edits ...edit) []byte {
	out := string(data)
	for i := len(edits) - 1; i >= 0; i-- { // from the back, so that offsets stay true
		e := edits[i]
		out = out[:e.start] + e.text + out[e.end:]
	}
	return []byte(out)
}

// Set writes a text at a path below object number i of f.Objects() and makes the maps that are
// missing. The new text is read again, and nothing but that value may differ.
//
// A literal block without its final newline (|-) keeps its style: the value then lacks that newline.
func (f *File) Set(i int, path []string, value string) (*File, error) {
	target, err := f.target(i)
	if err != nil {
		return nil, err
	}
	e := &editor{f: f, lines: newLines(f.Data), eol: eolOf(f.Data)}
	candidates, err := e.set(target.Node, path, value)
	if err != nil {
		return nil, fmt.Errorf("editing %s: %w", strings.Join(path, "."), err)
	}
	change := func(n *Node, v string) { put(n, path, v) }
	return f.firstGood(candidates, target, change, value, strings.Join(path, "."))
}

// SetItem writes item number at of the list of texts at path; at may be the length of the list, or 0
// where there is none yet, to append.
func (f *File) SetItem(i int, path []string, at int, value string) (*File, error) {
	target, err := f.target(i)
	if err != nil {
		return nil, err
	}
	e := &editor{f: f, lines: newLines(f.Data), eol: eolOf(f.Data)}
	candidates, err := e.setItem(target.Node, path, at, value)
	if err != nil {
		return nil, fmt.Errorf("editing %s[%d]: %w", strings.Join(path, "."), at, err)
	}
	change := func(n *Node, v string) { putItem(n, path, at, v) }
	return f.firstGood(candidates, target, change, value, strings.Join(path, "."))
}

func (f *File) target(i int) (Object, error) {
	objects, err := f.Objects()
	if err != nil {
		return Object{}, err
	}
	if i < 0 || i >= len(objects) {
		return Object{}, fmt.Errorf("no object number %d", i)
	}
	return objects[i], nil
}

// firstGood takes the first candidate that reads back as the old file with that one change.
func (f *File) firstGood(candidates [][]edit, target Object, change func(*Node, string), value, path string) (*File, error) {
	full := f.expected(target, func(n *Node) { change(n, value) })
	chomped := f.expected(target, func(n *Node) { change(n, strings.TrimSuffix(value, "\n")) })
	for _, c := range candidates {
		next, err := Read(apply(f.Data, c...))
		if err != nil {
			continue
		}
		if got := dumpAll(next.Docs); got == full || got == chomped {
			return next, nil
		}
	}
	return nil, fmt.Errorf("editing %s: %w", path, ErrStyle)
}

// expected gives the dump of the documents after a change of the target.
func (f *File) expected(target Object, change func(*Node)) string {
	docs := make([]*Node, len(f.Docs))
	copy(docs, f.Docs)
	docs[target.doc] = clone(docs[target.doc])
	change(target.in(docs))
	return dumpAll(docs)
}

func clone(n *Node) *Node {
	c := *n
	c.Pairs, c.Items = nil, nil
	for _, p := range n.Pairs {
		c.Pairs = append(c.Pairs, Pair{clone(p.Key), clone(p.Value)})
	}
	for _, item := range n.Items {
		c.Items = append(c.Items, clone(item))
	}
	return &c
}

// put sets a text in a tree; maps that are missing or null are made at the end.
func put(n *Node, path []string, value string) {
	for _, key := range path[:len(path)-1] {
		next := n.Get(key)
		if next.IsNull() {
			next = &Node{Kind: Map}
			setPair(n, key, next)
		}
		n = next
	}
	setPair(n, path[len(path)-1], &Node{Kind: String, Text: value})
}

func putItem(n *Node, path []string, at int, value string) {
	list := n.Path(path...)
	if list.IsNull() {
		put(n, path, "")
		list = n.Path(path...)
		*list = Node{Kind: Seq}
	}
	item := &Node{Kind: String, Text: value}
	if at < len(list.Items) {
		list.Items[at] = item
		return
	}
	list.Items = append(list.Items, item)
}

func setPair(n *Node, key string, value *Node) {
	for i, p := range n.Pairs {
		if p.Key.Text == key {
			n.Pairs[i].Value = value
			return
		}
	}
	n.Pairs = append(n.Pairs, Pair{&Node{Kind: String, Text: key}, value})
}

// dumpAll writes trees without their places and styles; the members of a map in the order of their
// names, since an edit may add one anywhere.
func dumpAll(docs []*Node) string {
	var b strings.Builder
	for _, d := range docs {
		dump(&b, d)
		b.WriteByte('\n')
	}
	return b.String()
}

func dump(b *strings.Builder, n *Node) {
	fmt.Fprintf(b, "%d %q %q", n.Kind, n.Text, n.problem)
	for _, p := range sortedPairs(n.Pairs) {
		b.WriteString(" {")
		dump(b, p.Key)
		b.WriteString(": ")
		dump(b, p.Value)
		b.WriteString("}")
	}
	for _, item := range n.Items {
		b.WriteString(" [")
		dump(b, item)
		b.WriteString("]")
	}
}
