package main

import "testing"

func TestANumberHasOneSpelling(t *testing.T) {
	for text, want := range map[string]number{"0": 0, "7": 7, "41": 41, "999999999999999": 999999999999999} {
		var n number
		if err := n.Set(text); err != nil || n != want || n.String() != text {
			t.Errorf("%q: want %d, got %d, %v", text, want, n, err)
		}
	}
	for _, text := range []string{"", " 7", "7 ", "+7", "-7", "010", "00", "0x10", "0b1", "0o7", "1_0", "1e3", "7.0", "٧", "1000000000000000"} {
		n := number(5)
		if err := n.Set(text); err == nil || n != 5 {
			t.Errorf("%q is taken as %d", text, n)
		}
	}
}

func TestATermIsANumberOfDays(t *testing.T) {
	if term, err := parseTerm("90d"); err != nil || term.Hours() != 90*24 {
		t.Errorf("got %v, %v", term, err)
	}
	for _, text := range []string{"", "d", "90", "0d", "090d", "+90d", "-1d", "3651d", "90dd", "90h"} {
		if _, err := parseTerm(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
