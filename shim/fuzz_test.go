package shim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Fuzzing holds the shim to the Go readers on inputs made by chance: some hundred of them,
// or as many as SHIM_FUZZ says, which `make fuzz-shim` sets. A run is repeated by giving its
// seed as SHIM_FUZZ_SEED.

// share is percent of all inputs.
func share(t *testing.T, percent int) int {
	t.Helper()
	total := 300
	if given := os.Getenv("SHIM_FUZZ"); given != "" {
		var err error
		if total, err = strconv.Atoi(given); err != nil {
			t.Fatalf("SHIM_FUZZ: %v", err)
		}
	}
	return total * percent / 100
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
			reader  string
			percent int
			input   func() []byte
			fault   func(input []byte, said string) string
		}{
			{"warrant", 10, s.warrant, func(in []byte, said string) string { return differs(saysOfWarrant(in), said) }},
			{"block", 40, s.block, func(in []byte, said string) string { return differs(saysOfBlock(in), said) }},
			{"envelope", 25, s.envelope, r.envelopeDiffers},
			{"params", 5, s.params, func(in []byte, said string) string { return differs(saysOfParams(in), said) }},
			{"values", 15, s.values, func(in []byte, said string) string { return differs(saysOfValues(in), said) }},
			{"statement", 5, s.statement, func(in []byte, said string) string { return differs(saysOfStatement(in), said) }},
		} {
			t.Run(kind.reader, func(t *testing.T) {
				begun, n, faults, taken := time.Now(), share(t, kind.percent), 0, 0
				for i := 0; i < n && faults < 10; i++ {
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
				t.Logf("%d inputs of the kind %s, of which the shell took %d, in %s", n, kind.reader, taken, time.Since(begun).Round(time.Second))
			})
		}
	})
}
