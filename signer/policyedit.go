package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// scalarEdit is the new text of one field at the top of a policy document, without quotes.
type scalarEdit struct{ field, value string }

// editDocument writes fields at the top of a policy document and leaves every other byte as it is. The
// result is read again: nothing but those fields may differ.
func editDocument(document string, edits []scalarEdit) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil || len(root.Content) != 1 {
		return "", cannotEdit("the document")
	}
	type place struct {
		start, end int
		value      string
	}
	var places []place
	for _, e := range edits {
		node := topField(root.Content[0], e.field)
		if node == nil {
			return "", cannotEdit(e.field)
		}
		start, end := scalarSpan(document, node)
		if start < 0 {
			return "", cannotEdit(e.field)
		}
		places = append(places, place{start, end, e.value})
	}
	slices.SortFunc(places, func(a, b place) int { return b.start - a.start })
	out := document
	for _, p := range places {
		out = out[:p.start] + p.value + out[p.end:]
	}
	return out, onlyThose(document, out, edits)
}

func cannotEdit(field string) error {
	return &failure{
		code: exitUndecided, err: fmt.Errorf("%s is written in a way that cannot be edited in place", field),
		hint: "edit version, issued and expires yourself, then: hostwarrant policy sign -i FILE --key ROOT --replace",
	}
}

// topField is the value of a field of the document's map.
func topField(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name && n.Content[i+1].Kind == yaml.ScalarNode {
			return n.Content[i+1]
		}
	}
	return nil
}

// scalarSpan finds the text of a scalar between its quotes, if it has some; -1 where it is not there.
func scalarSpan(document string, n *yaml.Node) (start, end int) {
	lines := strings.SplitAfter(document, "\n")
	if n.Line > len(lines) {
		return -1, -1
	}
	for _, line := range lines[:n.Line-1] {
		start += len(line)
	}
	line := lines[n.Line-1]
	for range n.Column - 1 { // columns are characters
		_, size := utf8.DecodeRuneInString(line)
		start, line = start+size, line[size:]
	}
	if n.Style == yaml.DoubleQuotedStyle || n.Style == yaml.SingleQuotedStyle {
		start++
	}
	if !strings.HasPrefix(document[start:], n.Value) {
		return -1, -1
	}
	return start, start + len(n.Value)
}

// onlyThose reads both texts and wants them to differ in the edited fields alone.
func onlyThose(before, after string, edits []scalarEdit) error {
	var was, is map[string]any
	if yaml.Unmarshal([]byte(before), &was) != nil || yaml.Unmarshal([]byte(after), &is) != nil {
		return cannotEdit("the document")
	}
	for _, e := range edits {
		if fmt.Sprint(is[e.field]) != e.value {
			return cannotEdit(e.field)
		}
		was[e.field] = is[e.field]
	}
	if !reflect.DeepEqual(was, is) {
		return cannotEdit("the document")
	}
	return nil
}
