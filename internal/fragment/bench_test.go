package fragment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// large is a fragment with as many programs as asked.
func large(execs int) string {
	one := make([]string, execs)
	for i := range one {
		one[i] = fmt.Sprintf(`{"path": "/usr/lib/app/bin/program-%d", "args": ["program", "--flag=%d", "⋯"]},`, i, i)
	}
	return strings.Replace(base, `"execs": [`, `"execs": [`+strings.Join(one, ""), 1)
}

// BenchmarkVerify gives the cost of one verification, of fragments of several sizes: it grows with
// their size, and two checks of P-256 are in each.
func BenchmarkVerify(b *testing.B) {
	signer := testkit.NewFragmentSigner(b)
	for _, execs := range []int{0, 100, 1000, 10000} {
		o := parse(b, signer.Sign(b, large(execs), true))
		b.Run(fmt.Sprintf("execs=%d", execs), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fragment.Verify(o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSigner gives the cost of reading who claims to have signed, before any content is touched.
func BenchmarkSigner(b *testing.B) {
	o := parse(b, testkit.NewFragmentSigner(b).Sign(b, base, true))
	for b.Loop() {
		if _, err := fragment.Signer(o); err != nil {
			b.Fatal(err)
		}
	}
}
