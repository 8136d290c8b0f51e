package warrant_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/internal/warrant/corpus"
)

func cases(t testing.TB) []corpus.Case {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := corpus.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 200 {
		t.Fatalf("only %d cases", len(list))
	}
	return list
}

func TestCorpus(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			w, err := warrant.Find(c.Script)
			switch c.Verdict {
			case corpus.None:
				if w != nil || err != nil {
					t.Errorf("Find = %+v, %v; want neither", w, err)
				}
			case corpus.Accepted:
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(c.Script, w.Block()) {
					t.Errorf("the block is not in the script:\n%s", w.Block())
				}
			case corpus.Refused:
				refusedAs(t, err, c)
			}
		})
	}
}

func refusedAs(t *testing.T, err error, c corpus.Case) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	e := decision.From(err)
	if e.Reason != decision.WarrantMalformed || !strings.HasPrefix(e.What, fmt.Sprintf("line %d: ", c.Line)) || !strings.Contains(e.What, c.Word) {
		t.Errorf("got %s: %s\nwant line %d and %q", e.Reason, e.What, c.Line, c.Word)
	}
}
