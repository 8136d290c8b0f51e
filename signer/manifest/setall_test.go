package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetAllWritesManyValuesAtOnce(t *testing.T) {
	values := func(objects ...int) []Value {
		var all []Value
		for _, i := range objects {
			for _, v := range [][]string{{"metadata", "labels", "s/class", "base"}, {"metadata", "annotations", "s/a", "1"}, {"metadata", "annotations", "s/b", "2"}} {
				all = append(all, Value{i, v[:3], v[3]})
			}
		}
		return all
	}
	for name, tt := range map[string]struct {
		objects       []int
		before, after string
	}{
		"maps that are missing": {
			[]int{0},
			"kind: A # it\nmetadata:\n  name: x\nspec: {}\n",
			"kind: A # it\nmetadata:\n  name: x\n  labels:\n    s/class: \"base\"\n  annotations:\n    s/a: \"1\"\n    s/b: \"2\"\nspec: {}\n",
		},
		"values that are there": {
			[]int{0},
			"metadata:\n  annotations:\n    s/b: old # b\n    other: x\n  labels: {s/class: overlay, app: y}\n",
			"metadata:\n  annotations:\n    s/b: \"2\" # b\n    other: x\n    s/a: \"1\"\n  labels: {s/class: \"base\", app: y}\n",
		},
		"two documents and a list": {
			[]int{0, 1, 2},
			"kind: A\nmetadata: {name: x}\n---\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: y\n    labels:\n      app: y\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: z\n",
			"kind: A\nmetadata: {name: x, \"labels\": {\"s/class\": \"base\"}, \"annotations\": {\"s/a\": \"1\", \"s/b\": \"2\"}}\n---\nkind: List\nitems:\n" +
				"- apiVersion: v1\n  kind: A\n  metadata:\n    name: y\n    labels:\n      app: y\n      s/class: \"base\"\n    annotations:\n      s/a: \"1\"\n      s/b: \"2\"\n" +
				"- apiVersion: v1\n  kind: A\n  metadata:\n    name: z\n    labels:\n      s/class: \"base\"\n    annotations:\n      s/a: \"1\"\n      s/b: \"2\"\n",
		},
		"JSON": {
			[]int{0},
			`{"kind":"A","metadata":{"name":"x"}}`,
			`{"kind":"A","metadata":{"name":"x", "labels": {"s/class": "base"}, "annotations": {"s/a": "1", "s/b": "2"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.SetAll(values(tt.objects...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(tt.after, "\n"), strings.Split(string(got.Data), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What cannot be edited is an error here too, whatever stands beside it.
func TestSetAllRefusesWhatSetRefuses(t *testing.T) {
	f, err := Read([]byte("metadata:\n  labels:\n    a: x\n      y\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.SetAll([]Value{{0, []string{"metadata", "labels", "b"}, "1"}, {0, []string{"metadata", "labels", "a"}, "2"}})
	if !errors.Is(err, ErrStyle) {
		t.Errorf("want ErrStyle, got %v", err)
	}
	if _, err = f.SetAll([]Value{{1, []string{"metadata"}, "1"}}); err == nil {
		t.Error("no error for an object that is not there")
	}
}

// A list of many objects is read a fixed number of times.
func TestSetAllIsLinear(t *testing.T) {
	var b strings.Builder
	b.WriteString("kind: List\nitems:\n")
	var values []Value
	for i := range 2000 {
		fmt.Fprintf(&b, "- apiVersion: v1\n  kind: A\n  metadata:\n    name: x%d\n", i)
		for _, label := range []string{"a", "b", "c"} {
			values = append(values, Value{i, []string{"metadata", "labels", label}, "v"})
		}
	}
	f, err := Read([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	next, err := f.SetAll(values)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(next.Data), `    c: "v"`); got != 2000 {
		t.Errorf("%d of 2000 have the last label", got)
	}
}

func TestDropKeyTakesOnlyTheMember(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"in a block":              {"metadata:\n  annotations:\n    a: x # a\n    drop: |\n      y\n\n    # b\n    b: z\n", "metadata:\n  annotations:\n    a: x # a\n\n    # b\n    b: z\n"},
		"the last of a file":      {"metadata:\n  annotations:\n    a: x\n    drop: y\n", "metadata:\n  annotations:\n    a: x\n"},
		"the first in brackets":   {`{"metadata":{"annotations":{"drop":"x", "a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`},
		"a later one in brackets": {"metadata: {annotations: {a: 'b', drop: \"x\", c: d}}\n", "metadata: {annotations: {a: 'b', c: d}}\n"},
		"none":                    {"metadata: {name: x}\n", "metadata: {name: x}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.DropKey(0, "metadata", "annotations", "drop")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
	f, err := Read([]byte("metadata: {annotations: {drop: x}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.DropKey(0, "metadata", "annotations", "drop"); err == nil {
		t.Error("the only member of a map was dropped")
	}
}
