package corpus_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/warrant/corpus"
)

const list = `# a comment
base one
	a
	b

base two
	z

case changed
 a
- b
+ x\x20\r\(yo*2)\\
+*2 n%d
+ end\
= line 3: why not

case as it is
= accepted

case of another base
from two
= none
`

func TestParse(t *testing.T) {
	want := []corpus.Case{
		{Name: "changed", Script: []byte("a\nx \ryoyo\\\nn1\nn2\nend"), Verdict: corpus.Refused, Line: 3, Word: "why not"},
		{Name: "as it is", Script: []byte("a\nb\n"), Verdict: corpus.Accepted},
		{Name: "of another base", Script: []byte("z\n"), Verdict: corpus.None},
	}
	got, err := corpus.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAListWithAFaultIsNoList(t *testing.T) {
	for name, text := range map[string]string{
		"a case without a verdict":      "case a\n",
		"a case before another ended":   "case a\ncase b\n= none\n",
		"a case twice":                  "case a\n= none\ncase a\n= none\n",
		"a base that is not there":      "case a\nfrom three\n= none\n",
		"a line that is not there":      "case a\n- c\n= none\n",
		"a place that is not there":     "case a\n c\n= none\n",
		"a line before its place":       "case a\n b\n- a\n= none\n",
		"a line that is no edit":        "case a\n* a\n= none\n",
		"an edit without its space":     "case a\n+a\n= none\n",
		"an escape that is none":        "case a\n+ \\q\n= none\n",
		"a verdict that is none":        "case a\n= perhaps\n",
		"a refusal without a line":      "case a\n= refused\n",
		"a verdict outside of any case": "= none\n",
	} {
		if got, err := corpus.Parse("base one\n\ta\n\tb\n\n" + text); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	if got, err := corpus.Parse(strings.TrimPrefix(list, "# a comment\nbase one\n")); err == nil {
		t.Errorf("no base: read as %+v", got)
	}
}
