package manifest

import (
	"cmp"
	"slices"
	"strings"
)

// Value is a text at a path below object number Object of f.Objects().
type Value struct {
	Object int
	Path   []string
	Text   string
}

// SetAll writes texts as Set does, many at a time: a file of many objects is read a few times, and not
// once for each value. What cannot be written beside the others is written alone.
func (f *File) SetAll(values []Value) (*File, error) {
	for len(values) > 0 {
		now, later, err := f.apart(values)
		if err != nil {
			return nil, err
		}
		next, err := f.together(now)
		if err != nil {
			next, err = f.oneByOne(now)
		}
		if err != nil {
			return nil, err
		}
		f, values = next, later
	}
	return f, nil
}

// apart gives the values that can be written at once, and those that wait: of several below a map that
// is not there yet, the first makes it.
func (f *File) apart(values []Value) (now, later []Value, err error) {
	objects, err := f.Objects()
	if err != nil {
		return nil, nil, err
	}
	type place struct {
		object int
		path   string
	}
	making := map[place]bool{}
	for _, v := range values {
		missing := v.missing(objects)
		at := place{v.Object, missing}
		if missing != "" && making[at] {
			later = append(later, v)
			continue
		}
		making[at] = true
		now = append(now, v)
	}
	return now, later, nil
}

// missing is the first map on the way to the value that has no member yet; "" where there is none.
func (v Value) missing(objects []Object) string {
	if v.Object < 0 || v.Object >= len(objects) {
		return ""
	}
	n := objects[v.Object].Node
	for i, key := range v.Path[:len(v.Path)-1] {
		if n = n.Get(key); n.IsNull() || n.Kind == Map && len(n.Pairs) == 0 {
			return strings.Join(v.Path[:i+1], "\x00")
		}
	}
	return ""
}

// together makes all edits in one text, and reads it once.
func (f *File) together(values []Value) (*File, error) {
	objects, err := f.Objects()
	if err != nil {
		return nil, err
	}
	e := &editor{f: f, lines: newLines(f.Data), eol: eolOf(f.Data)}
	docs := make([]*Node, len(f.Docs))
	for i, doc := range f.Docs {
		docs[i] = clone(doc)
	}
	var all []edit
	for _, v := range values {
		if v.Object < 0 || v.Object >= len(objects) {
			return nil, ErrStyle
		}
		o := objects[v.Object]
		candidates, err := e.set(o.Node, v.Path, v.Text)
		if err != nil || len(candidates) == 0 {
			return nil, ErrStyle
		}
		all = append(all, candidates[0]...)
		put(o.in(docs), v.Path, v.Text)
	}
	slices.SortStableFunc(all, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	text, ok := f.edited(all)
	if !ok {
		return nil, ErrStyle
	}
	next, err := Read(text)
	if err != nil || dumpAll(next.Docs) != dumpAll(docs) {
		return nil, ErrStyle
	}
	return next, nil
}

// in is the object's node in a copy of its file's documents.
func (o Object) in(docs []*Node) *Node {
	n := docs[o.doc]
	for _, i := range o.items {
		n = n.Get("items").Items[i]
	}
	return n
}

// edited makes sorted edits in one pass; false where two of them overlap.
func (f *File) edited(sorted []edit) ([]byte, bool) {
	var b []byte
	at := 0
	for _, e := range sorted {
		if e.start < at {
			return nil, false
		}
		b = append(append(b, f.Data[at:e.start]...), e.text...)
		at = e.end
	}
	return append(b, f.Data[at:]...), true
}

func (f *File) oneByOne(values []Value) (*File, error) {
	for _, v := range values {
		next, err := f.Set(v.Object, v.Path, v.Text)
		if err != nil {
			return nil, err
		}
		f = next
	}
	return f, nil
}
