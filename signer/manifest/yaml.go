package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads all documents of a YAML stream. Empty documents are left out, as kubectl does.
func readYAML(data []byte, l *lines) ([]*Node, error) {
	// kubectl ends every line before it reads YAML: a block that ends the file without a newline has one.
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(bytes.Clone(data), '\n')
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var docs []*Node
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %v", err)
		}
		if len(doc.Content) != 1 {
			continue
		}
		n := fromYAML(doc.Content[0], l)
		if n.IsNull() && n.problem == "" {
			continue
		}
		docs = append(docs, n)
	}
}

// fromYAML builds our tree. What may be read in two ways becomes a problem of its node, which Check
// reports: a document of no interest may hold it.
func fromYAML(y *yaml.Node, l *lines) *Node {
	n := &Node{Line: y.Line, Col: y.Column, off: l.offset(y.Line, y.Column)}
	switch {
	case y.Kind == yaml.AliasNode:
		n.Kind, n.problem = Literal, fmt.Sprintf("alias *%.64s: write the value out", y.Value)
		return n
	case y.Anchor != "":
		n.problem = fmt.Sprintf("anchor &%.64s: write the value out where it is used", y.Anchor)
	case y.Style&yaml.TaggedStyle != 0, n.off < len(l.data) && l.data[n.off] == '!': // a lone ! leaves no trace but its place
		n.problem = fmt.Sprintf("explicit tag %.64s: leave it out", y.Tag)
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.Kind, n.Style = Map, collectionStyle(y)
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := fromYAML(y.Content[i], l)
			checkKey(key, y.Content[i])
			n.Pairs = append(n.Pairs, Pair{key, fromYAML(y.Content[i+1], l)})
		}
	case yaml.SequenceNode:
		n.Kind, n.Style = Seq, collectionStyle(y)
		for _, c := range y.Content {
			n.Items = append(n.Items, fromYAML(c, l))
		}
	case yaml.ScalarNode:
		scalar(n, y, l)
	default:
		n.problem = "not a YAML value"
	}
	return n
}

// checkKey refuses what is no plain name: other readers turn such keys into other names.
func checkKey(key *Node, y *yaml.Node) {
	switch {
	case key.problem != "":
	case y.ShortTag() == "!!merge":
		key.problem = "merge key <<: write the members out"
	case key.Kind != String:
		key.problem = "a key that is no string: put it in quotes"
	}
}

func collectionStyle(y *yaml.Node) Style {
	if y.Style&yaml.FlowStyle != 0 {
		return Flow
	}
	return Block
}

func scalar(n *Node, y *yaml.Node, l *lines) {
	n.Kind, n.Text, n.Style, n.empty = String, y.Value, Plain, y.Value == ""
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		n.Style = Double
	case y.Style&yaml.SingleQuotedStyle != 0:
		n.Style = Single
	case y.Style&yaml.LiteralStyle != 0:
		n.Style = LiteralB
	case y.Style&yaml.FoldedStyle != 0:
		n.Style = Folded
	}
	if n.Style == LiteralB || n.Style == Folded {
		n.Chomp = chomp(l.data[n.off:])
	}
	if n.Style != Plain {
		return
	}
	switch y.ShortTag() {
	case "!!null":
		n.Kind, n.Text = Literal, "null"
	case "!!bool", "!!int", "!!float":
		number(n, y)
	default:
		oldBool(n)
	}
}

// chomp finds the chomping indicator in the header of a block scalar (YAML 1.2, section 8.1.1.2).
func chomp(header []byte) byte {
	for _, c := range header[min(1, len(header)):] {
		switch {
		case c == '-' || c == '+':
			return c
		case c < '1' || c > '9':
			return 0
		}
	}
	return 0
}

// number writes a YAML number or boolean as JSON, or makes it a problem (.inf, .nan).
func number(n *Node, y *yaml.Node) {
	// check: Malformed: an octal number with a sign inside (0o+7), which is a text to kubectl
	if strings.HasPrefix(y.Value, "0o+") || strings.HasPrefix(y.Value, "0o-") {
		n.problem = "a number that readers take differently: put it in quotes"
		return
	}
	var v any
	if err := y.Decode(&v); err != nil {
		n.problem = "a number that cannot be read: put it in quotes"
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		n.problem = "a number that JSON does not have: put it in quotes"
		return
	}
	n.Kind, n.Text = Literal, string(text)
}

// oldBool reads the words of YAML 1.1 as kubectl does, so that a field which the API server would
// refuse for its type is not a string here.
func oldBool(n *Node) {
	switch n.Text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		n.Kind, n.Text = Literal, "true"
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		n.Kind, n.Text = Literal, "false"
	}
}
