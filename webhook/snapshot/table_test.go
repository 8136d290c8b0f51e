package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A value is in the group that it is in now, and in no other.
func TestATableKeepsGroups(t *testing.T) {
	tab := table[string]{group: func(v string) string { return v[:1] }}
	steps := []struct {
		name    string
		do      func()
		a, b    []string
		ingroup int
	}{
		{"nothing", func() {}, []string{}, []string{}, 0},
		{"two of a group, by key", func() { tab.set("2", "a2"); tab.set("1", "a1") }, []string{"a1", "a2"}, []string{}, 1},
		{"one of another", func() { tab.set("3", "b3") }, []string{"a1", "a2"}, []string{"b3"}, 2},
		{"one that changes", func() { tab.set("1", "a9") }, []string{"a9", "a2"}, []string{"b3"}, 2},
		{"one that goes over", func() { tab.set("1", "b1") }, []string{"a2"}, []string{"b1", "b3"}, 2},
		{"one that goes", func() { tab.drop("2") }, []string{}, []string{"b1", "b3"}, 1},
		{"one that is not there", func() { tab.drop("2") }, []string{}, []string{"b1", "b3"}, 1},
	}
	for _, s := range steps {
		s.do()
		if diff := cmp.Diff([][]string{s.a, s.b}, [][]string{tab.of("a"), tab.of("b")}); diff != "" || len(tab.groups) != s.ingroup {
			t.Errorf("%s: %d groups: %s", s.name, len(tab.groups), diff)
		}
	}
}
