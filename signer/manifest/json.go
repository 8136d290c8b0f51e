package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var errDeep = errors.New("nested too deeply")

// jsonReader builds trees from a stream of JSON values.
type jsonReader struct {
	data  []byte
	dec   *json.Decoder
	lines *lines
	depth int
}

// maxDepth is deeper than any object goes; encoding/json itself stops a document at 10000.
const maxDepth = 1000

// readJSON reads one JSON value after the other. An error means: this is not JSON.
func readJSON(data []byte, l *lines) ([]*Node, error) {
	r := &jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), lines: l}
	r.dec.UseNumber()
	var docs []*Node
	for {
		n, err := r.value()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
}

// start is the offset of the next token.
func (r *jsonReader) start() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[i]) >= 0 {
		i++
	}
	return i
}

func (r *jsonReader) value() (*Node, error) {
	off := r.start()
	tok, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	if r.depth++; r.depth > maxDepth {
		return nil, errDeep
	}
	defer func() { r.depth-- }()
	n := &Node{off: off}
	n.Line, n.Col = r.lines.at(off)
	if err := r.fill(n, tok); err != nil {
		return nil, err
	}
	n.end = int(r.dec.InputOffset())
	return n, nil
}

func (r *jsonReader) fill(n *Node, tok json.Token) error {
	switch t := tok.(type) {
	case json.Delim:
		if t == '{' {
			return r.object(n)
		}
		return r.array(n)
	case string:
		n.Kind, n.Style, n.Text = String, Double, t
	case json.Number:
		n.Kind, n.Style, n.Text = Literal, Plain, t.String()
	case bool:
		n.Kind, n.Style, n.Text = Literal, Plain, fmt.Sprint(t)
	case nil:
		n.Kind, n.Style, n.Text = Literal, Plain, "null"
	default:
		return fmt.Errorf("unknown JSON token %T", tok)
	}
	return nil
}

func (r *jsonReader) object(n *Node) error {
	n.Kind, n.Style = Map, Flow
	for r.dec.More() {
		key, err := r.value()
		if err != nil {
			return noEOF(err)
		}
		val, err := r.value()
		if err != nil {
			return noEOF(err)
		}
		n.Pairs = append(n.Pairs, Pair{key, val})
	}
	_, err := r.dec.Token()
	return noEOF(err)
}

func (r *jsonReader) array(n *Node) error {
	n.Kind, n.Style = Seq, Flow
	for r.dec.More() {
		item, err := r.value()
		if err != nil {
			return noEOF(err)
		}
		n.Items = append(n.Items, item)
	}
	_, err := r.dec.Token()
	return noEOF(err)
}

// noEOF keeps a text that breaks off from looking like one that ends.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
