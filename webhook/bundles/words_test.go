package bundles

import "testing"

func TestFragmentsAreCountedInWords(t *testing.T) {
	for n, want := range map[int]string{0: "0 fragments", 1: "1 fragment", 2: "2 fragments"} {
		if got := fragments(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
