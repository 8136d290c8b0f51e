package shim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Fuzzing holds the shim's readers to the Go readers on inputs made by chance. Here it is
// a small run; SHIM_FUZZ=full, which `make fuzz-shim` sets, is the whole of it. A run is
// repeated by giving its seed as SHIM_FUZZ_SEED.

func full() bool { return os.Getenv("SHIM_FUZZ") == "full" }

// inputs is how many a reader gets.
func inputs(small, whole int) int {
	if full() {
		return whole
	}
	return small
}

func fuzzSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("SHIM_FUZZ_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("SHIM_FUZZ_SEED: %v", err)
		}
	}
	t.Logf("seed %d (SHIM_FUZZ_SEED=%d repeats it)", seed, seed)
	return seed
}

// TestReadersAgreeOnInputsMadeByChance: same verdict, same first line at fault in a
// warrant, same values, nothing executed and nothing on stderr.
func TestReadersAgreeOnInputsMadeByChance(t *testing.T) {
	seed := fuzzSeed(t)
	eachShell(t, func(t *testing.T, r *readers) {
		s := newSource(t, seed)
		for _, kind := range []struct {
			reader string
			n      int
			input  func() []byte
			fault  func(input []byte, said string) string
		}{
			{"warrant", inputs(100, 20_000), s.warrant, func(in []byte, said string) string { return differs(saysOfWarrant(in), said) }},
			{"block", inputs(50, 100_000), s.block, func(in []byte, said string) string { return differs(saysOfBlock(in), said) }},
			{"envelope", inputs(100, 60_000), s.envelope, r.envelopeDiffers},
			{"params", inputs(50, 10_000), s.params, func(in []byte, said string) string { return differs(saysOfParams(in), said) }},
			{"statement", inputs(50, 10_000), s.statement, func(in []byte, said string) string { return differs(saysOfStatement(in), said) }},
		} {
			t.Run(kind.reader, func(t *testing.T) {
				begun, faults, taken := time.Now(), 0, 0
				for i := 0; i < kind.n && faults < 10; i++ {
					input := kind.input()
					said := r.ask(t, kind.reader, input)
					if !strings.HasPrefix(said, "refused ") {
						taken++
					}
					fault := kind.fault(input, said)
					if fault == "" {
						fault = r.strayed()
					}
					if fault != "" {
						faults++
						t.Errorf("input %d: %s\n%q", i, fault, input[:min(len(input), 1500)])
					}
				}
				t.Logf("%d inputs of the kind %s, of which the shell took %d, in %s", kind.n, kind.reader, taken, time.Since(begun).Round(time.Second))
			})
		}
	})
}
