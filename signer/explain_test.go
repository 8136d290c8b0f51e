package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// damaged is a signed profile after a tool or a hand was at it.
func (w *world) damaged(t *testing.T, change func(string) string) string {
	t.Helper()
	path := w.write("source.yaml", plainProfile)
	if r := w.hostwarrant("sign", "-i", path, "--key", w.key("alice", w.alice)); r.code != exitDone {
		t.Fatal(r.err)
	}
	text := change(w.read(path))
	if text == w.read(path) {
		t.Fatal("nothing was damaged")
	}
	return w.write("damaged.yaml", text)
}

// Each damage that YAML tools and editors do is named, with its line.
func TestVerifyNamesWhatHappenedToAScript(t *testing.T) {
	replace := func(old, new string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, new, 1) }
	}
	const block = "    install: |\n      #!/bin/sh\n      echo install\n"
	for name, tt := range map[string]struct {
		change func(string) string
		reason string
		says   []string
	}{
		"the final newline is dropped": {
			replace("install: |\n", "install: |-\n"), "NewlineChanged",
			[]string{"the final newline was lost", "spec.scripts.install, line 9: the block scalar says |-"},
		},
		"newlines are kept": {
			func(s string) string {
				return strings.Replace(s, block, "    install: |+\n      #!/bin/sh\n      echo install\n\n", 1)
			}, "NewlineChanged",
			[]string{"a final newline was added", "the block scalar says |+"},
		},
		"a newline is added": {
			replace("echo join\\n", "echo join\\n\\n"), "NewlineChanged",
			[]string{"a final newline was added", "first that differs is on line 3, column 1: signed the end, here \"\\n\""},
		},
		"CRLF":   {replace("echo join\\n", "echo join\\r\\n"), "NewlineChanged", []string{"newlines"}},
		"folded": {replace("install: |\n", "install: >\n"), "BytesChanged", []string{"folded block scalar (>)", "line 9", "write it with |"}},
		"re-wrapped in single quotes": {
			replace(block, "    install: '#!/bin/sh\n      echo install'\n"), "BytesChanged",
			[]string{"without a block scalar, which joins lines"},
		},
		"re-wrapped without quotes": {
			replace("    join: \"#!/bin/sh\\necho join\\n\"", "    join: one\n      two"), "BytesChanged",
			[]string{"without a block scalar, which joins lines"},
		},
		"re-indented by an indicator": {
			replace(block, "    install: |2\n        #!/bin/sh\n        echo install\n"), "BytesChanged",
			[]string{"only by white space: every line was indented by 2"},
		},
		"re-indented in part": {
			replace("      echo install\n", "        echo install\n"), "BytesChanged",
			[]string{"first that differs is on line 2, column 1: signed \"echo install\\n\", here \"  echo install\\n\""},
		},
		"trailing spaces": {
			replace("      echo install\n", "      echo install  \n"), "BytesChanged",
			[]string{"spaces were added at the end of line 2"},
		},
		"a folded signature": {
			replace("    join: |\n      -----BEGIN", "    join: >\n      -----BEGIN"), "SignatureMalformed",
			[]string{"spec.signatures.join, line ", "it is a folded block scalar (>)"},
		},
		"a byte": {
			replace("echo leave", "echo Leave"), "BytesChanged",
			[]string{"leave: BytesChanged", "the signed bytes are those of", "line 2, column 6: signed \"leave\", here \"Leave\""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.damaged(t, tt.change)
			r := w.hostwarrant("verify", path, w.path("source.yaml"), "--policy", w.policy, "--root", w.pubs)
			wantRefused(t, r, tt.reason)
			for _, say := range tt.says {
				if !strings.Contains(r.out+r.err, say) {
					t.Errorf("want %q, got stdout %q, stderr %q", say, r.out, r.err)
				}
			}
		})
	}
}

func TestVerifyNamesTheLineOfTheFile(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		text string
		line int
	}{
		"a template":        {strings.Replace(plainProfile, "echo install", "echo {{ x }}", 1), 11},
		"a template quoted": {strings.Replace(plainProfile, "install: |\n      #!/bin/sh\n      echo install", `install: "echo {{ x }}"`, 1), 9},
		"no signature":      {plainProfile, 9},
		"a key twice":       {plainProfile + "    leave: x\n", 16},
		"an anchor":         {strings.Replace(plainProfile, "name: tls", "name: &n tls", 1), 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.hostwarrant("verify", w.write("p.yaml", tt.text), "--policy", w.policy, "--root", w.pubs, "-o", "json")
			var rows []row
			if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != 1 {
				t.Fatalf("%v: %s", err, r.out)
			}
			if rows[0].Line != tt.line {
				t.Errorf("want line %d, got %+v", tt.line, rows[0])
			}
		})
	}
}

// A script that happens to be in another object, unsigned by this signature, is not called the source.
func TestVerifyComparesWithSignedBytesOnly(t *testing.T) {
	w := newWorld(t)
	signatures := w.signedBy(w.alice, goodScripts())
	other := goodScripts()
	other[script.Join] = "#!/bin/sh\necho other\n"
	a, b := w.write("a.json", w.profile(other, signatures)), w.write("b.json", w.profile(other, nil))
	r := w.hostwarrant("verify", a, b, "--policy", w.policy, "--root", w.pubs)
	wantRefused(t, r, "BytesChanged")
	if strings.Contains(r.err, "the signed bytes are those of") {
		t.Errorf("got %q", r.err)
	}
}
