package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An edit of a script must leave every line alone that it does not change, however odd it is written.
func TestSetKeepsTheLinesOfABlockThatStay(t *testing.T) {
	head := "kind: SSHJoinProfile\nspec:\n  scripts:\n"
	tests := map[string]struct{ before, old, value, after string }{
		"a line is put in behind the first": {
			before: head + "    join: | # kept\n        #!/bin/sh\n\n      \n        echo a  \n          indented\n\n    leave: x\n",
			old:    "#!/bin/sh\n\n\necho a  \n  indented\n",
			value:  "#!/bin/sh\n#warrant: v1\n\n\necho a  \n  indented\n",
			after:  head + "    join: | # kept\n        #!/bin/sh\n        #warrant: v1\n\n      \n        echo a  \n          indented\n\n    leave: x\n",
		},
		"lines in the middle are replaced, one of them by none": {
			before: head + "    join: |-\n      a\n      b\n      c\n      \n      d\n",
			old:    "a\nb\nc\n\nd",
			value:  "a\nB\n\nd",
			after:  head + "    join: |-\n      a\n      B\n      \n      d\n",
		},
		"blank lines that a block keeps stay": {
			before: head + "    join: |+\n      a\n      b\n\n\n    leave: x\n",
			old:    "a\nb\n\n\n",
			value:  "a\nB\nb\n\n\n",
			after:  head + "    join: |+\n      a\n      B\n      b\n\n\n    leave: x\n",
		},
		"an indentation indicator stays": {
			before: head + "    join: |2\n          a\n      b\n",
			old:    "    a\nb\n",
			value:  "    a\nc\nb\n",
			after:  head + "    join: |2\n          a\n      c\n      b\n",
		},
		"escapes of a quoted script stay as they are written": {
			before: `{"spec":{"scripts": {"join" : "#!\/bin\/sh\n\u0065cho \"a\"\t\n"}}}`,
			old:    "#!/bin/sh\necho \"a\"\t\n",
			value:  "#!/bin/sh\n#warrant: v1\necho \"a\"\t\n",
			after:  `{"spec":{"scripts": {"join" : "#!\/bin\/sh\n#warrant: v1\n\u0065cho \"a\"\t\n"}}}`,
		},
		"escapes of a quoted script in YAML stay": {
			before: head + `    join: "#!/bin/sh\n\u0065cho \"a\"\t\n" # kept` + "\n",
			old:    "#!/bin/sh\necho \"a\"\t\n",
			value:  "#!/bin/sh\n#warrant: v1\necho \"a\"\t\n",
			after:  head + `    join: "#!/bin/sh\n#warrant: v1\n\u0065cho \"a\"\t\n" # kept` + "\n",
		},
		"a pair of surrogates is one character": {
			before: `{"spec":{"scripts":{"join":"a\ud83d\ude00b"}}}`,
			old:    "a😀b",
			value:  "a😀xb",
			after:  `{"spec":{"scripts":{"join":"a\ud83d\ude00xb"}}}`,
		},
		"a quoted script over two lines is written anew": {
			before: head + "    join: \"a\n\n      b\"\n",
			old:    "a\nb",
			value:  "a\nc",
			after:  head + `    join: "a\nc"` + "\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Docs[0].Path("spec", "scripts", "join").Str(); got != tt.old {
				t.Fatalf("the text before reads %q", got)
			}
			got, err := f.Set(0, []string{"spec", "scripts", "join"}, tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got.Data)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if text := got.Docs[0].Path("spec", "scripts", "join").Str(); text != tt.value {
				t.Errorf("the text after reads %q", text)
			}
		})
	}
}

func TestSetWritesAVersionOnOneLine(t *testing.T) {
	tests := map[string]struct{ before, after string }{
		"single quotes stay":       {"spec:\n  version: '7' # v\n", "spec:\n  version: '42' # v\n"},
		"double quotes stay":       {"spec:\n  version: \"7\"\n", "spec:\n  version: \"42\"\n"},
		"a plain word gets quotes": {"spec:\n  version: v7 # v\n", "spec:\n  version: \"42\" # v\n"},
		"a number gets quotes":     {"spec:\n  version: 7\n", "spec:\n  version: \"42\"\n"},
		"an absent value":          {"spec:\n  version: # v\n  x: y\n", "spec:\n  version: \"42\" # v\n  x: y\n"},
		"an absent field":          {"spec:\n  x: y\n", "spec:\n  x: y\n  version: \"42\"\n"},
		"in brackets":              {"spec: {version: v7, x: y}\n", "spec: {version: \"42\", x: y}\n"},
		"in JSON":                  {`{"spec":{"x":"y"}}`, `{"spec":{"x":"y", "version": "42"}}`},
		"a block":                  {"spec:\n  version: |-\n    7\n  x: y\n", "spec:\n  version: |-\n    42\n  x: y\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Read([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Set(0, []string{"spec", "version"}, "42")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got.Data)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
