package warrant_test

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		if _, err := warrant.Find([]byte(page)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckParams(b *testing.B) {
	w := &warrant.Warrant{Phase: "join"}
	values, pin := upstreams(), pinned()
	for b.Loop() {
		if err := w.CheckParams(values, pin); err != nil {
			b.Fatal(err)
		}
	}
}
