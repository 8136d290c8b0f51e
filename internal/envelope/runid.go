package envelope

import (
	"encoding/hex"
	"fmt"
	"io"
)

// RunID names one run of one phase on one host: 32 lower-case hex digits. A
// host never runs a known run-id again.
type RunID string

// runIDBytes gives 128 bits: no two runs meet by chance.
const runIDBytes = 16

// NewRunID draws a run-id from rand.
func NewRunID(rand io.Reader) (RunID, error) {
	var b [runIDBytes]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return "", fmt.Errorf("drawing a run-id: %v", err)
	}
	return RunID(hex.EncodeToString(b[:])), nil
}

// Valid reports whether the run-id has its one spelling.
func (r RunID) Valid() bool {
	return len(r) == 2*runIDBytes && lowerHex(string(r))
}

func lowerHex(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
