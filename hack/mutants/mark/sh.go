package mark

import (
	"bytes"
	"strings"
)

// InShell finds the marks of one shell script.
func InShell(file string, source []byte) Found {
	var found Found
	offset := 0
	lines := bytes.SplitAfter(source, []byte("\n"))
	for i, raw := range lines {
		offset += len(raw)
		text, isComment := strings.CutPrefix(strings.TrimSpace(string(raw)), "#")
		if !isComment {
			continue
		}
		codes, why, isMark, err := parse(text)
		if !isMark {
			continue
		}
		if err != nil {
			found.problem(file, i+1, "%v", err)
			continue
		}
		next := ""
		if i+1 < len(lines) {
			next = strings.TrimSuffix(string(lines[i+1]), "\n")
		}
		if fault := unusable(next); fault != "" {
			found.problem(file, i+1, "%s", fault)
			continue
		}
		found.Marks = append(found.Marks, Mark{
			File: file, Line: i + 1, Codes: codes, Why: why,
			start: offset, end: offset + len(next),
			replacement: without,
		})
	}
	return found
}

// unusable says why a line is no check that can be taken away by itself.
func unusable(line string) string {
	code := strings.TrimSpace(line)
	switch {
	case code == "" || strings.HasPrefix(code, "#"):
		return "the mark does not stand directly above a line of code"
	case strings.HasSuffix(code, `\`) || strings.HasSuffix(code, "|") || strings.HasSuffix(code, "&&"):
		return "the line below the mark goes on in the next one; a check is one line"
	}
	return ""
}

// without is what stands in place of a check: nothing where the line is a branch of a
// case, else the command that does nothing, as a body must not be empty.
func without(line string) string {
	if strings.HasSuffix(strings.TrimSpace(line), ";;") {
		return ""
	}
	return ":"
}
