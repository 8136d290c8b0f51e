package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Kind is the JSON type of a node.
type Kind int

// The kinds of nodes. Literal is a number, a boolean or null.
const (
	Map Kind = iota + 1
	Seq
	String
	Literal
)

// Style is how a node is written in the text.
type Style int

// The styles of nodes.
const (
	Block    Style = iota + 1 // collections by indentation
	Flow                      // collections in brackets, as in JSON
	Plain                     // scalars without quotes
	Double                    // "…"
	Single                    // '…'
	LiteralB                  // |
	Folded                    // >
)

// Node is a value with its place in the text.
type Node struct {
	Kind  Kind
	Style Style
	Text  string  // String: the value; Literal: its JSON text
	Pairs []Pair  // Map
	Items []*Node // Seq

	Line, Col int  // from 1, for people
	Chomp     byte // '-' or '+' in the header of a block scalar, else 0
	off       int  // byte offset of the first byte
	end       int  // byte offset behind the last byte; 0 where the reader does not know it
	empty     bool // a plain scalar of no bytes
	problem   string
}

// Pair is one member of a map.
type Pair struct{ Key, Value *Node }

// Error is a fault in a text, with its place.
type Error struct {
	Line, Col int
	What      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.What)
}

// Get gives the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	return nil
}

// Path follows keys from map to map, or gives nil.
func (n *Node) Path(keys ...string) *Node {
	for _, k := range keys {
		n = n.Get(k)
	}
	return n
}

// Str gives the text of a string node, or "".
func (n *Node) Str() string {
	if n == nil || n.Kind != String {
		return ""
	}
	return n.Text
}

// IsNull tells whether a node stands for nothing.
func (n *Node) IsNull() bool {
	return n == nil || n.Kind == Literal && n.Text == "null"
}

// Check finds what makes a tree ambiguous: the first such place, or nil.
func (n *Node) Check() error {
	// check: Malformed: aliases, merges and tags move what a field says to another place
	if n.problem != "" {
		return &Error{n.Line, n.Col, n.problem}
	}
	seen := make(map[string]bool, len(n.Pairs))
	for _, p := range n.Pairs {
		if err := p.Key.Check(); err != nil {
			return err
		}
		// check: Malformed: a reader that takes the first and one that takes the last see two objects
		if seen[p.Key.Text] {
			return &Error{p.Key.Line, p.Key.Col, fmt.Sprintf("key %.64q stands twice in one map", p.Key.Text)}
		}
		seen[p.Key.Text] = true
		if err := p.Value.Check(); err != nil {
			return err
		}
	}
	for _, item := range n.Items {
		if err := item.Check(); err != nil {
			return err
		}
	}
	return nil
}

// JSON gives the node as the JSON that the API server gets to read.
func (n *Node) JSON() ([]byte, error) {
	var b bytes.Buffer
	if err := n.writeJSON(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (n *Node) writeJSON(b *bytes.Buffer) error {
	if n.problem != "" {
		return &Error{n.Line, n.Col, n.problem}
	}
	switch n.Kind {
	case Map:
		return n.writeMap(b)
	case Seq:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item.writeJSON(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case String:
		return writeString(b, n.Text)
	case Literal:
		b.WriteString(n.Text)
		return nil
	default:
		return &Error{n.Line, n.Col, "not a value"}
	}
}

func (n *Node) writeMap(b *bytes.Buffer) error {
	b.WriteByte('{')
	for i, p := range n.Pairs {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeString(b, p.Key.Text); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := p.Value.writeJSON(b); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeString(b *bytes.Buffer, s string) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("writing a string as JSON: %v", err)
	}
	b.Truncate(b.Len() - 1) // the encoder ends with a newline
	return nil
}

// quote gives a double-quoted scalar that JSON and YAML read alike.
func quote(s string) (string, error) {
	var b bytes.Buffer
	if err := writeString(&b, s); err != nil {
		return "", err
	}
	return b.String(), nil
}
