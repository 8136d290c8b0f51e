package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const armor = "-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n"

// mark stands where a signature is expected in the texts below.
func indented(n int) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(strings.TrimSuffix(armor, "\n"), "\n", "\n"+pad) + "\n"
}

func TestSetChangesOnlyTheSignature(t *testing.T) {
	head := "kind: SSHJoinProfile # what it is\nspec:\n"
	tests := map[string]struct{ before, after string }{
		"a literal block keeps its header, its indentation and what stands behind it": {
			before: head + "  signatures:\n    # by alice\n    join: |  # old\n        x\n        y\n\n    leave: |\n      z\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    # by alice\n    join: |  # old\n" + indented(8) + "\n    leave: |\n      z\n  scripts: {join: a}\n",
		},
		"a literal block without final newline keeps its style": {
			before: head + "  signatures:\n    join: |-\n      x\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    join: |-\n" + indented(6) + "  scripts: {join: a}\n",
		},
		"a block that keeps its blank lines loses those of the old signature": {
			before: head + "  signatures:\n    join: |+\n      x\n\n\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    join: |+\n" + indented(6) + "  scripts: {join: a}\n",
		},
		"a folded block becomes a literal one": {
			before: head + "  signatures:\n    join: >\n      x\n",
			after:  head + "  signatures:\n    join: |\n" + indented(6),
		},
		"double quotes stay": {
			before: head + "  signatures:\n    join: \"x\\n\\\"y\" # old\n",
			after:  head + "  signatures:\n    join: " + quoted(armor) + " # old\n",
		},
		"single quotes become double ones": {
			before: head + "  signatures:\n    join: 'it''s' # old\n",
			after:  head + "  signatures:\n    join: " + quoted(armor) + " # old\n",
		},
		"a plain word becomes a literal block": {
			before: head + "  signatures:\n    join: none yet # TODO\n    leave: x\n",
			after:  head + "  signatures:\n    join: | # TODO\n" + indented(6) + "    leave: x\n",
		},
		"a null becomes a literal block": {
			before: head + "  signatures:\n    join: ~\n    leave: x\n",
			after:  head + "  signatures:\n    join: |\n" + indented(6) + "    leave: x\n",
		},
		"an absent value becomes a literal block": {
			before: head + "  signatures:\n    join: # TODO\n    leave: x\n",
			after:  head + "  signatures:\n    join: | # TODO\n" + indented(6) + "    leave: x\n",
		},
		"a phase that is missing goes behind the others": {
			before: head + "  signatures:\n    leave: |\n      x\n\n  # next\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    leave: |\n      x\n    join: |\n" + indented(6) + "\n  # next\n  scripts: {join: a}\n",
		},
		"signatures that are missing go to the end of spec": {
			before: head + "    scripts:\n        join: |\n            a\n\nstatus: {}\n",
			after:  head + "    scripts:\n        join: |\n            a\n    signatures:\n        join: |\n" + indented(12) + "\nstatus: {}\n",
		},
		"a last script that keeps its blank lines keeps them": {
			before: head + "  scripts:\n    join: |+\n      a\n\n---\nkind: Other\n",
			after:  head + "  scripts:\n    join: |+\n      a\n\n  signatures:\n    join: |\n" + indented(6) + "---\nkind: Other\n",
		},
		"a script that ends the file without newline gets the one that kubectl adds": {
			before: head + "  version: '1'\n  scripts:\n    join: |\n      a",
			after:  head + "  version: '1'\n  scripts:\n    join: |\n      a\n  signatures:\n    join: |\n" + indented(6),
		},
		"a quoted text that ends the file without newline": {
			before: head + "  scripts: {join: a}",
			after:  head + "  scripts: {join: a}\n  signatures:\n    join: |\n" + indented(6),
		},
		"a signature that ends the file without newline": {
			before: head + "  scripts: {join: a}\n  signatures:\n    join: |\n      x",
			after:  head + "  scripts: {join: a}\n  signatures:\n    join: |\n" + indented(6),
		},
		"an empty map of signatures is filled": {
			before: head + "  signatures: {} # none\n  scripts: {join: a}\n",
			after:  head + "  signatures: # none\n    join: |\n" + indented(6) + "  scripts: {join: a}\n",
		},
		"null signatures are filled": {
			before: head + "  signatures: null\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    join: |\n" + indented(6) + "  scripts: {join: a}\n",
		},
		"signatures without a value are filled": {
			before: head + "  signatures:\n  scripts: {join: a}\n",
			after:  head + "  signatures:\n    join: |\n" + indented(6) + "  scripts: {join: a}\n",
		},
		"flow style stays": {
			before: "{kind: SSHJoinProfile, spec: {scripts: {join: a}, signatures: {join: x, leave: y}}}\n",
			after:  "{kind: SSHJoinProfile, spec: {scripts: {join: a}, signatures: {join: " + quoted(armor) + ", leave: y}}}\n",
		},
		"flow style gets a member": {
			before: "{kind: SSHJoinProfile, spec: {scripts: {join: a}}}\n",
			after:  "{kind: SSHJoinProfile, spec: {\"signatures\": {\"join\": " + quoted(armor) + "}, scripts: {join: a}}}\n",
		},
		"JSON keeps its layout": {
			before: "{\n  \"kind\": \"SSHJoinProfile\",\n  \"spec\": {\n    \"scripts\": {\"join\": \"\\u0061\"}\n  }\n}\n",
			after: "{\n  \"kind\": \"SSHJoinProfile\",\n  \"spec\": {\n    \"scripts\": {\"join\": \"\\u0061\"},\n    \"signatures\": {\"join\": " +
				quoted(armor) + "}\n  }\n}\n",
		},
		"JSON gets a phase behind the others": {
			before: `{"spec":{"signatures":{"leave":"x"}}}`,
			after:  `{"spec":{"signatures":{"leave":"x", "join": ` + quoted(armor) + `}}}`,
		},
		"a null in JSON is replaced": {
			before: `{"spec":{"signatures":{"join":null,"leave":"x"}}}`,
			after:  `{"spec":{"signatures":{"join":` + quoted(armor) + `,"leave":"x"}}}`,
		},
		"an empty map in JSON is filled": {
			before: `{"spec":{"signatures":{ },"x":1}}`,
			after:  `{"spec":{"signatures":{"join": ` + quoted(armor) + `},"x":1}}`,
		},
		"a comment with characters of several bytes does not move the edit": {
			before: head + "  version: \"ä€😀\" # ä€😀\n  signatures: {leave: \"ä€😀\", join: \"x\"} # ä\n",
			after:  head + "  version: \"ä€😀\" # ä€😀\n  signatures: {leave: \"ä€😀\", join: " + quoted(armor) + "} # ä\n",
		},
		"a line separator inside a script does not move the edit": {
			before: head + "  scripts:\n    join: |\n      a\u2028      b\n  signatures:\n    join: x\n",
			after:  head + "  scripts:\n    join: |\n      a\u2028      b\n  signatures:\n    join: |\n" + indented(6),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for eol, conv := range map[string]func(string) string{
				"LF":   func(s string) string { return s },
				"CRLF": func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
			} {
				f, err := Read([]byte(conv(tt.before)))
				if err != nil {
					t.Fatal(err)
				}
				got, err := f.Set(0, []string{"spec", "signatures", "join"}, armor)
				if err != nil {
					t.Fatalf("%s: %v", eol, err)
				}
				if diff := cmp.Diff(conv(tt.after), string(got.Data)); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", eol, diff)
				}
			}
		})
	}
}

func quoted(s string) string {
	q, err := quote(s)
	if err != nil {
		panic(err)
	}
	return q
}

func TestSetWorksInListsAndStreams(t *testing.T) {
	before := "# top\nkind: ConfigMap\ndata: &x {a: *y}\n---\nkind: List\nitems:\n- apiVersion: v1\n  kind: SSHJoinProfile\n  spec:\n    scripts: {join: a}\n- apiVersion: v1\n  kind: SSHJoinProfile\n  spec:\n    scripts: {join: b}\n"
	before = strings.ReplaceAll(before, "&x {a: *y}", "{a: b}")
	f, err := Read([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 2} {
		if f, err = f.Set(i, []string{"spec", "signatures", "join"}, armor); err != nil {
			t.Fatal(err)
		}
	}
	sig := "    signatures:\n      join: |\n" + indented(8)
	want := strings.Replace(before, "{join: a}\n", "{join: a}\n"+sig, 1) + sig
	if diff := cmp.Diff(want, string(f.Data)); diff != "" {
		t.Error(diff)
	}
}

func TestSetItemChangesOnlyTheItem(t *testing.T) {
	tests := map[string]struct {
		before, after string
		at            int
	}{
		"an item is replaced": {
			before: "spec:\n  signatures:\n  - |\n    x\n  - |\n    y\n  document: a\n", at: 0,
			after: "spec:\n  signatures:\n  - |\n" + indented(4) + "  - |\n    y\n  document: a\n",
		},
		"an item is added": {
			before: "spec:\n  signatures:\n    - |\n      x\n\n  document: a\n", at: 1,
			after: "spec:\n  signatures:\n    - |\n      x\n    - |\n" + indented(6) + "\n  document: a\n",
		},
		"a list is made": {
			before: "spec:\n  document: a\n", at: 0,
			after: "spec:\n  document: a\n  signatures:\n    - |\n" + indented(6),
		},
		"an empty list is filled": {
			before: "spec:\n  signatures: []\n  document: a\n", at: 0,
			after: "spec:\n  signatures:\n    - |\n" + indented(6) + "  document: a\n",
		},
		"a list in JSON gets an item": {
			before: `{"spec":{"signatures":["x"]}}`, at: 1,
			after: `{"spec":{"signatures":["x", ` + quoted(armor) + `]}}`,
		},
		"an empty list in JSON is filled": {
			before: `{"spec":{"signatures":[]}}`, at: 0,
			after: `{"spec":{"signatures":[` + quoted(armor) + `]}}`,
		},
		"a list is made in JSON": {
			before: `{"spec":{"document":"a"}}`, at: 0,
			after: `{"spec":{"document":"a", "signatures": [` + quoted(armor) + `]}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.SetItem(0, []string{"spec", "signatures"}, tt.at, armor)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSetRefusesWhatItCannotEdit(t *testing.T) {
	for name, text := range map[string]string{
		"a map where a text belongs":        "spec: {signatures: {join: {a: b}}}\n",
		"a text where a map belongs":        "spec: {signatures: x}\n",
		"a plain text of several lines":     "spec:\n  signatures:\n    join: a\n      b\n",
		"an empty map with a comment in it": "spec:\n  signatures: { # none\n  }\n",
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Set(0, []string{"spec", "signatures", "join"}, armor); err == nil {
				t.Errorf("edited to %q", got.Data)
			}
		})
	}
	f, err := Read([]byte("spec:\n  signatures:\n    join: a\n      b\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Set(0, []string{"spec", "signatures", "join"}, armor); !errors.Is(err, ErrStyle) {
		t.Errorf("want ErrStyle, got %v", err)
	}
}

// FuzzSet: an edit either fails or changes nothing but the value.
func FuzzSet(f *testing.F) {
	f.Add("spec:\n  signatures:\n    join: |\n      x\n  scripts: {join: a}\n")
	f.Add("- spec: {a: 'b'}\n  x: >+\n\n   y\n")
	f.Add("spec:\n  scripts:\n    join: \"a\n\n      b\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read([]byte(text))
		if err != nil {
			return
		}
		objects, err := file.Objects()
		if err != nil || len(objects) == 0 {
			return
		}
		next, err := file.Set(0, []string{"spec", "signatures", "join"}, armor)
		if err != nil {
			return
		}
		again, err := next.Objects()
		if err != nil {
			t.Fatal(err)
		}
		got := again[0].Node.Path("spec", "signatures", "join").Str()
		if strings.TrimSuffix(got, "\n")+"\n" != armor {
			t.Fatalf("reads back as %q", got)
		}
		if b, err := again[0].Node.JSON(); err == nil && !json.Valid(b) {
			t.Fatalf("no JSON: %s", b)
		}
	})
}
