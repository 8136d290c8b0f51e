package lint

import (
	"cmp"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// places turns byte offsets into lines and columns.
type places struct {
	starts []int   // offset of each line
	runes  []int32 // characters before each offset
}

func newPlaces(text []byte) *places {
	p := &places{starts: []int{0}, runes: make([]int32, len(text)+1)}
	for i, b := range text {
		p.runes[i+1] = p.runes[i]
		if utf8.RuneStart(b) {
			p.runes[i+1]++
		}
		if b == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

// at gives line and column of an offset, from 1.
func (p *places) at(offset int) (line, col int) {
	offset = max(0, min(offset, len(p.runes)-1))
	line = sort.SearchInts(p.starts, offset+1)
	return line, int(p.runes[offset]-p.runes[p.starts[line-1]]) + 1
}

// maxText bounds message and hint: they are lines for people.
const maxText = 400

func (p *places) finding(h hit) Finding {
	// Both may quote words of the script, which a terminal must not obey.
	f := Finding{Rule: h.rule, Severity: h.level, Message: decision.OneLine(h.message, maxText), Hint: decision.OneLine(h.hint, maxText)}
	f.Line, f.Col = p.at(h.start)
	f.EndLine, f.EndCol = p.at(max(h.start, h.end))
	return f
}

// sortHits brings hits into the order of the script; those at one place into that of their rules.
func sortHits(all []hit) {
	slices.SortStableFunc(all, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rule, b.rule))
	})
}
