package main

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

// sized is a profile whose scripts have so many characters each.
func (w *world) sized(characters int, letter string) string {
	w.t.Helper()
	scripts := map[script.Phase]string{}
	for _, phase := range script.Phases() {
		scripts[phase] = "#" + strings.Repeat(letter, characters-1)
	}
	return w.write("sized.json", w.profile(scripts, nil))
}

func TestSignRefusesWhatTheClusterCannotStore(t *testing.T) {
	w := newWorld(t)
	key := w.key("alice", w.alice)
	for name, tt := range map[string]struct {
		characters   int
		letter, says string
	}{
		"a script over the CRD's limit":    {script.MaxCharacters + 1, "a", "TooLarge: script has 262145 characters"},
		"an object over etcd's":            {script.MaxCharacters, "ä", "TooLarge: the object takes "},
		"an object over etcd's, < escaped": {script.MaxCharacters / 2, "<", "TooLarge: the object takes "},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, w.hostwarrant("sign", w.sized(tt.characters, tt.letter), "--key", key), exitRefused, tt.says)
		})
	}
}

func TestSignAdvisesServerSideApply(t *testing.T) {
	w := newWorld(t)
	key := w.key("alice", w.alice)
	for size, want := range map[int]bool{20000: false, 70000: true, script.MaxCharacters: true} {
		r := w.hostwarrant("sign", w.sized(size, "a"), "--key", key)
		if r.code != exitDone || strings.Contains(r.err, "use kubectl apply --server-side") != want {
			t.Errorf("%d characters a script: exit %d, %.300s", size, r.code, r.err)
		}
	}
}

// kubectl's annotation shares its room with those that are there already.
func TestSignCountsTheAnnotationsThatAreThere(t *testing.T) {
	w := newWorld(t)
	key := w.key("alice", w.alice)
	text := func(note string) string {
		return strings.Replace(w.read(w.sized(60000, "a")), `"metadata":{`, `"metadata":{"annotations":{"note":"`+note+`"},`, 1)
	}
	for note, want := range map[string]bool{"short": false, strings.Repeat("n", 20000): true} {
		r := w.hostwarrant("sign", w.write("p.json", text(note)), "--key", key)
		if r.code != exitDone || strings.Contains(r.err, "use kubectl apply --server-side") != want {
			t.Errorf("a note of %d: exit %d, %.300s", len(note), r.code, r.err)
		}
	}
}
