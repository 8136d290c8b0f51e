package main

import (
	"slices"
	"strings"
)

// similar gives the names that word may have been meant for, the nearest first: those it begins, and
// those one letter away (two, for a word of six letters or more).
func similar(word string, names []string) []string {
	limit := max(1, min(2, len(word)/3))
	distance := func(name string) int {
		if len(word) > 1 && strings.HasPrefix(name, word) {
			return 0
		}
		return edits(word, name)
	}
	near := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return distance(name) > limit })
	slices.SortStableFunc(near, func(a, b string) int { return distance(a) - distance(b) })
	return near[:min(3, len(near))]
}

// edits counts the letters to insert, delete, change or swap to make b of a (Damerau and Levenshtein).
func edits(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
