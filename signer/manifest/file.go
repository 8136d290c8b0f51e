package manifest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxFile is the largest file that is read: the API server takes 3 MiB a request, and a file may hold
// a few objects.
const MaxFile = 16 << 20

// maxLeading is well below the 4096 bytes in which kubectl looks for a brace (apimachinery,
// NewYAMLOrJSONDecoder).
const maxLeading = 1024

// File is a text with its documents.
type File struct {
	Data []byte
	JSON bool
	Docs []*Node
}

// Object is a Kubernetes object in a file.
type Object struct {
	Node                   *Node
	APIVersion, Kind, Name string
	Where                  string // "" or "document 2, items[0]"

	doc   int   // index in File.Docs
	items []int // indexes of items from there
}

// Group is the API group of the object, "" for the core group.
func (o Object) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Read parses a file of YAML documents or of JSON values.
func Read(data []byte) (*File, error) {
	if len(data) > MaxFile {
		return nil, &Error{What: fmt.Sprintf("%d bytes, more than %d", len(data), MaxFile)}
	}
	l := newLines(data)
	// check: Malformed: kubectl strips it from the start of each document, and sees an object where we see none
	if i := bytes.Index(data, []byte("\ufeff")); i >= 0 {
		line, col := l.at(i)
		return nil, &Error{line, col, "a byte order mark: save the text without it"}
	}
	// check: Malformed: kubectl looks no further for the brace that tells JSON from YAML
	if len(data)-len(bytes.TrimLeft(data, " \t\r\n")) > maxLeading {
		return nil, &Error{1, 1, fmt.Sprintf("more than %d blanks before the text", maxLeading)}
	}
	// check: Malformed: what a reader drops or replaces was not what people looked at
	if i := badByte(data); i >= 0 {
		line, col := l.at(i)
		return nil, &Error{line, col, "a NUL byte, or text that is not UTF-8"}
	}
	f := &File{Data: data}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		if docs, err := readJSON(data, l); err == nil {
			f.JSON, f.Docs = true, docs
			return f, nil
		}
	}
	// check: Malformed: kubectl reads JSON as far as it goes, in which a line separator is text, and not a fold
	if i := separatorInJSON(data); i >= 0 {
		line, col := l.at(i)
		return nil, &Error{line, col, "a Unicode line separator in a text that begins as JSON: write it as \\u"}
	}
	// check: Malformed: kubectl takes any Unicode space before a brace for a blank, and what follows for JSON
	if err := checkStarts(l); err != nil {
		return nil, err
	}
	// check: Malformed: kubectl takes CR LF from each line before it reads YAML, and sees one line end where we see two
	if i := bytes.Index(data, []byte("\r\r\n")); i >= 0 {
		line, col := l.at(i)
		return nil, &Error{line, col, "a line that ends in CR CR LF: write one kind of line end"}
	}
	// check: Malformed: kubectl splits documents at other places than a YAML reader
	if err := checkMarkers(l); err != nil {
		return nil, err
	}
	docs, err := readYAML(data, l)
	if err != nil {
		return nil, &Error{What: err.Error()}
	}
	f.Docs = docs
	return f, nil
}

// badByte is the offset of the first NUL or of the first byte that is not UTF-8, or -1.
func badByte(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// separatorInJSON is the offset of the first NEL, LS or PS in a text that begins with a brace and is no
// JSON as a whole, or -1.
func separatorInJSON(data []byte) int {
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return -1
	}
	return bytes.IndexAny(data, "\u0085\u2028\u2029")
}

// checkStarts refuses documents that begin with something other than ASCII: a space that is none to a
// YAML reader.
func checkStarts(l *lines) error {
	begun := false
	for i := range l.starts {
		text, _ := l.text(i + 1)
		if strings.HasPrefix(text, "---") {
			begun = false
			continue
		}
		first := bytes.TrimLeft(l.data[l.starts[i]:], " \t") // a line may end in a character that is not ASCII
		if !begun && len(first) > 0 && first[0] >= utf8.RuneSelf {
			return &Error{i + 1, 1, "a document that begins with a character that is not ASCII"}
		}
		begun = begun || strings.TrimLeft(text, " \t") != ""
	}
	return nil
}

// checkMarkers refuses document markers and directives that kubectl and a YAML reader take
// differently: kubectl splits at lines of --- alone, before it reads any YAML.
func checkMarkers(l *lines) error {
	for i := range l.starts {
		text, _ := l.text(i + 1)
		switch {
		case strings.HasPrefix(text, "---") && strings.TrimSpace(text[3:]) != "":
			return &Error{i + 1, 4, "text after a document marker: write --- alone on its line"}
		case strings.HasPrefix(text, "..."):
			return &Error{i + 1, 1, "a line of ... : write --- between documents"}
		case strings.HasPrefix(text, "%"):
			return &Error{i + 1, 1, "a YAML directive: leave it out"}
		}
	}
	return nil
}

// Objects gives the objects of a file; lists are opened. An error names a document of which it is not
// certain what it is.
func (f *File) Objects() ([]Object, error) {
	var all []Object
	for i, doc := range f.Docs {
		where := ""
		if len(f.Docs) > 1 {
			where = fmt.Sprintf("document %d", i+1)
		}
		objects, err := objectsOf(doc, where)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			o.doc = i
			all = append(all, o)
		}
	}
	return all, nil
}

func objectsOf(n *Node, where string) ([]Object, error) {
	o, err := describe(n, where)
	if err != nil {
		return nil, err
	}
	items := n.Get("items")
	if items == nil || items.Kind != Seq {
		return []Object{o}, nil
	}
	var all []Object
	// kubectl takes any object that has items for a list, whatever its kind.
	if !strings.HasSuffix(o.Kind, "List") {
		all = append(all, o)
	}
	for i, item := range items.Items {
		// check: Malformed: kubectl gives an item without a kind the kind of its list
		if item.Get("kind").Str() == "" || item.Get("apiVersion").Str() == "" {
			return nil, &Error{item.Line, item.Col, "an item of a list that does not say its apiVersion and kind"}
		}
		inner, err := objectsOf(item, strings.TrimPrefix(fmt.Sprintf("%s, items[%d]", where, i), ", "))
		if err != nil {
			return nil, err
		}
		for _, o := range inner {
			o.items = append([]int{i}, o.items...)
			all = append(all, o)
		}
	}
	return all, nil
}

// describe reads what an object is, and refuses every doubt about that.
func describe(n *Node, where string) (Object, error) {
	if n.problem != "" {
		return Object{}, &Error{n.Line, n.Col, n.problem}
	}
	if n.Kind != Map {
		return Object{}, &Error{n.Line, n.Col, "not a Kubernetes object: a map is expected"}
	}
	seen := map[string]bool{}
	for _, p := range n.Pairs {
		name := p.Key.Text
		// check: Malformed: a merge key or an alias could bring in another kind
		if p.Key.problem != "" {
			return Object{}, &Error{p.Key.Line, p.Key.Col, p.Key.problem}
		}
		if !isIdentity(name) {
			continue
		}
		// check: Malformed: a reader that takes the first and one that takes the last see two kinds
		if seen[strings.ToLower(name)] {
			return Object{}, &Error{p.Key.Line, p.Key.Col, fmt.Sprintf("key %.64q stands twice in one map", name)}
		}
		seen[strings.ToLower(name)] = true
		// check: Malformed: the kind must stand where it is read
		if p.Value.problem != "" {
			return Object{}, &Error{p.Value.Line, p.Value.Col, p.Value.problem}
		}
	}
	return Object{
		Node: n, Where: where, APIVersion: n.Get("apiVersion").Str(), Kind: n.Get("kind").Str(),
		Name: n.Path("metadata", "name").Str(),
	}, nil
}

func isIdentity(key string) bool {
	for _, name := range []string{"apiVersion", "kind", "items", "metadata"} {
		if strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}
