package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDropItemTakesOnlyTheItem(t *testing.T) {
	const head, tail = "kind: TrustPolicy # it\nspec:\n", "  document: a\n"
	for name, tt := range map[string]struct {
		before string
		at     int
		after  string
	}{
		"the first of a block": {
			head + "  signatures:\n  - |\n    a\n    b\n  # by bob\n  - |\n    c\n" + tail, 0,
			head + "  signatures:\n  # by bob\n  - |\n    c\n" + tail,
		},
		"one in the middle": {
			head + "  signatures:\n    - |\n      a\n    - |\n      b\n\n    - |\n      c\n" + tail, 1,
			head + "  signatures:\n    - |\n      a\n\n    - |\n      c\n" + tail,
		},
		"the last of a block": {
			head + "  signatures:\n  - |\n    a\n  - |\n    b\n" + tail, 1,
			head + "  signatures:\n  - |\n    a\n" + tail,
		},
		"the last of a file": {
			"spec:\n  signatures:\n  - |\n    a\n  - |\n    b\n", 1,
			"spec:\n  signatures:\n  - |\n    a\n",
		},
		"the first in brackets": {`{"kind":"A","spec":{"signatures":["a", "b"]}}`, 0, `{"kind":"A","spec":{"signatures":["b"]}}`},
		"the last in brackets":  {`{"kind":"A","spec":{"signatures":["a", "b"]}}`, 1, `{"kind":"A","spec":{"signatures":["a"]}}`},
		"in brackets of YAML":   {"kind: A\nspec: {signatures: ['a', \"b\", c]}\n", 1, "kind: A\nspec: {signatures: ['a', c]}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.DropItem(0, []string{"spec", "signatures"}, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, text := range map[string]string{
		"no list":            "spec: {}\n",
		"a text":             "spec: {signatures: a}\n",
		"no such item":       "spec: {signatures: [a, b]}\n",
		"only one item":      "spec:\n  signatures:\n  - a\n",
		"no list, but a map": "spec: {signatures: {a: b, c: d, e: f}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.DropItem(0, []string{"spec", "signatures"}, 2); err == nil {
				t.Error("no error")
			}
		})
	}
}
