package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The example is what people start from: no parameter of it takes more than join.sh is made for.
func TestTheExampleTakesNoMoreThanItNeeds(t *testing.T) {
	w := newWorld(t)
	dir := w.path("join")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testkit.Root(t), "examples", "join"))); err != nil {
		t.Fatal(err)
	}
	if r := w.hostwarrant("sign", dir, "--key", w.key("alice", w.alice), "--serial", "1", "--target", "class default"); r.code != exitDone {
		t.Fatal(r.err)
	}
	join, err := warrant.Find([]byte(w.read(filepath.Join(dir, "join.sh"))))
	if err != nil || join == nil {
		t.Fatal(err)
	}
	for _, p := range join.Params {
		if p.Matcher.Kind == warrant.MatchType && p.Matcher.Value == "text" {
			t.Errorf("%s takes any text", p.Name)
		}
	}
	id, there := join.Declared("KPSSH_PROVIDER_ID")
	if !there || !id.Required {
		t.Fatalf("got %+v", id)
	}
	for value, fits := range map[string]bool{
		"kpssh://pool/host-a": true, "kpssh://pool-1/a.b-c": true, "kpssh://a/b": true,
		"kpssh://pool": false, "kpssh:///a": false, "kpssh://pool/": false, "aws:///i-2": false, "x kpssh://pool/a": false, `kpssh://pool/a"`: false, "kpssh://pool/a\n": false,
	} {
		if id.Matcher.Accepts(value) != fits {
			t.Errorf("%q: accepted %v", value, !fits)
		}
	}
}
