package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// asKubectl reads a text as kubectl does, up to the first document that it cannot read.
func asKubectl(data []byte) []json.RawMessage {
	var all []json.RawMessage
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var ext runtime.RawExtension
		if err := dec.Decode(&ext); err != nil {
			return all
		}
		raw := bytes.TrimSpace(ext.Raw)
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
			all = append(all, append(json.RawMessage(nil), raw...))
		}
	}
}

func plain(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	return v
}

// agrees fails where kubectl would send an object that is not the one we judge. A text that only one
// of the two reads is no danger: kubectl sends nothing, or we refuse it.
func agrees(t *testing.T, data []byte) (read bool) {
	t.Helper()
	f, err := Read(data)
	if err != nil {
		return false
	}
	if _, err := f.Objects(); err != nil {
		return false
	}
	theirs := asKubectl(data)
	if len(theirs) > len(f.Docs) {
		t.Fatalf("kubectl reads %d documents, we read %d: %q", len(theirs), len(f.Docs), data)
	}
	for i, raw := range theirs {
		if f.Docs[i].Check() != nil {
			continue
		}
		ours, err := f.Docs[i].JSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain(t, raw), plain(t, ours)); diff != "" {
			t.Fatalf("document %d of %q (-kubectl +ours):\n%s", i+1, data, diff)
		}
	}
	return len(theirs) == len(f.Docs)
}

func TestWeReadWhatKubectlReads(t *testing.T) {
	for name, text := range map[string]string{
		"all scalars":            "a: 1\nb: 1.5\nc: true\nd: null\ne: ~\nf:\ng: text\nh: 'it''s'\ni: \"\\u00e4\\n\"\n",
		"booleans of YAML 1.1":   "a: yes\nb: No\nc: on\nd: OFF\ne: y\nf: N\n",
		"numbers":                "a: 010\nb: 0x1F\nc: 1e3\nd: 1_000\ne: +1\nf: -0\ng: 9223372036854775807\nh: 18446744073709551615\ni: .5\nj: 0o14\nk: 0b11\n",
		"what only looks typed":  "a: 2026-11-30\nb: 2026-11-30T01:02:03Z\nc: 1:30\nd: 1.2.3\ne: =\nf: 0x\ng: 1e\nh: nan\n",
		"block scalars":          "a: |\n  x\n   y\n\n  z\n\nb: >\n  x\n  y\n\n   z\nc: |-\n  x\nd: |+\n  x\n\ne: |2\n   x\n",
		"a block to the end":     "a: |\n  x",
		"CRLF":                   "a: |\r\n  x\r\n  y\r\nb: \"x\r\n  y\"\r\n",
		"other line breaks":      "a: |\n  x\u0085  y\n  z\u2028  w\nb: c\n",
		"a stream":               "a: 1\n---\nb: 2\n---\n---\n# only a comment\n---\nc: 3\n",
		"a marker with blanks":   "a: 1\n---  \t\nb: 2\n",
		"a marker at the start":  "---\na: 1\n",
		"flow":                   "{a: [1, x, 'y'], \"b\": {c: d}}\n",
		"JSON":                   `{"a":"\ud83d\ude00\/","b":[1,2.50,1e2,null,true],"c":{}}`,
		"two JSON values":        `{"a":1}` + "\n" + `{"b":2}`,
		"JSON after blanks":      "\n\n  {\"a\": 1}\n",
		"a lone surrogate":       `{"a":"\ud800"}`,
		"a text with tabs":       "a: x\ty\nb: |\n  if\n  \tx\n",
		"a list":                 "kind: List\nitems:\n- {apiVersion: v1, kind: A}\n- apiVersion: v1\n  kind: B\n",
		"a comment after text":   "a: x # y\nb: x#y\n",
		"several lines of plain": "a: x\n  y\n\n  z\n",
		"quotes over lines":      "a: \"x \\\n  y\n\n  z\"\nb: 'x\n\n  y'\n",
	} {
		t.Run(name, func(t *testing.T) {
			if !agrees(t, []byte(text)) {
				t.Errorf("not read by both: %q", text)
			}
		})
	}
}

func TestWeRefuseWhatKubectlReadsDifferently(t *testing.T) {
	for name, text := range map[string]string{
		"CR CR LF in a script":  "a: |\n  set -eu\r\r\n  id\n",
		"CR CR LF in a plain":   "a: x\r\r\n  y\n",
		"an octal with a sign":  "a: 0o+26\n",
		"a negative octal":      "a: 0o-7\n",
		"a byte order mark":     "a: 1\n---\n\ufeffb: 2\n",
		"a no-break space":      "\u00a0{a: b}",
		"NEL in JSON, then ---": "{\"a\":\"p\u0085q\"}\n---\n",
		"LS in JSON, then YAML": "{\"a\":\"p \u2028 q\"}\n---\nb: 1\n",
		"many blanks":           strings.Repeat(" ", 4100) + "{\"a\": \"x\u2028y\"}",
	} {
		t.Run(name, func(t *testing.T) {
			agrees(t, []byte(text))
			f, err := Read([]byte(text))
			if err == nil {
				err = f.Docs[0].Check()
			}
			if err == nil {
				t.Errorf("read: %q", text)
			}
		})
	}
}

// FuzzRead: what both read, both read alike.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"a: 1\n---\nb: |\n  x\n", `{"a": [1, "x"]}`, "a: \"x\\u0041\"\nb: 'y'\n", "- a\n", "a: 010\nb: yes\n", "a: >\n x\n\n  y\n", "{a: b}\n---\n{c: d}",
		"a: 1\n---\n\ufeffb: 2\n", "\u00a0{a: b}", "{\"a\":\"p\u0085q\"}\n---\n", "a: 1\n---\n\u0085{a: b}\n", strings.Repeat(" ", 4100) + "{\"a\": \"x\u2028y\"}",
		"a: 2026-01-01\nb: 1_0\nc: 0o7\n", "kind: x\nitems:\n- apiVersion: v1\n  kind: y\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agrees(t, data) })
}
