package shim

import (
	"os"
	"testing"

	warrants "github.com/hostwarrant/hostwarrant/internal/warrant/corpus"
)

// TestWarrantReadersAgree: the shim accepts exactly what internal/warrant accepts,
// reads the same in it, and finds the fault in the same line.
func TestWarrantReadersAgree(t *testing.T) {
	eachShell(t, func(t *testing.T, r *readers) {
		for _, c := range warrantCases(t) {
			t.Run(c.Name, func(t *testing.T) {
				if fault := differs(saysOfWarrant(c.Script), r.ask(t, "warrant", c.Script)); fault != "" {
					t.Error(fault)
				}
			})
		}
	})
}

func warrantCases(t *testing.T) []warrants.Case {
	t.Helper()
	text, err := os.ReadFile("../internal/warrant/testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := warrants.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}
