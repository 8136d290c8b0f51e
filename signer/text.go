package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// shown gives foreign text as it is where that is safe on a terminal, else quoted and cut.
func shown(s string) string {
	odd := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if len(s) > 200 || strings.ContainsFunc(s, odd) {
		return fmt.Sprintf("%.200q", s)
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
