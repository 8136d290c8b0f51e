package script

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// position tells a byte offset as people count: line and column from 1, the
// column in characters.
func position(text []byte, at int) string {
	before := text[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
