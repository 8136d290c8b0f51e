package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// odd tells characters that a terminal could obey, or that cannot be told apart by eye.
func odd(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// shown gives foreign text as it is where that is safe on a terminal, else quoted and cut.
func shown(s string) string {
	if len(s) > 200 || strings.ContainsFunc(s, odd) {
		return fmt.Sprintf("%.200q", s)
	}
	return s
}

// escaped gives foreign text whole: what is compared or vouched for must not hide behind a long word.
func escaped(s string) string {
	if strings.ContainsFunc(s, odd) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// objectName names an object of a file, whatever its author wrote.
func objectName(o manifest.Object) string {
	if o.Kind == "" {
		return "an object without a kind"
	}
	return shown(o.Kind) + "/" + shown(o.Name)
}

// plural counts things: 1 parameter, 2 parameters.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
