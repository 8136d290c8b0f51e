package warrant

import (
	"bytes"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// span is where the block stands in a script: its bytes are text[start:end].
type span struct{ start, end int }

// place finds where the block stands, or would stand.
func place(text []byte) (span, error) {
	if script.HasWarrantLine(text) {
		at, _, err := locate(text)
		return at, err
	}
	start := afterShebang(text)
	return span{start, start}, nil
}

func afterShebang(text []byte) int {
	if !bytes.HasPrefix(text, []byte("#!")) {
		return 0
	}
	line, _, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return len(text)
	}
	return len(line) + 1
}

// locate reads the block of a script that has a warrant line, in one pass over the
// script. Each fault is that of one line, the first in the order of lines.
func locate(text []byte) (span, *Warrant, error) {
	// check: WarrantMalformed: bash drops NUL, and every shell that reads the block does
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return span{}, nil, malformed(lineAt(text, at), "holds a NUL byte")
	}
	first := afterShebang(text)
	p := parser{line: 1, w: &Warrant{}}
	if first > 0 {
		p.line = 2
	}
	at := span{start: first, end: first}
	for p.key != "end" {
		line, _, found := bytes.Cut(text[at.end:], []byte("\n"))
		if !bytes.HasPrefix(line, []byte(prefix)) {
			return span{}, nil, p.missing(text, at.end)
		}
		if err := p.read(string(line), found); err != nil {
			return span{}, nil, err
		}
		at.end += len(line) + 1
		p.line++
	}
	if err := p.after(text, at); err != nil {
		return span{}, nil, err
	}
	return at, p.w, nil
}

// missing tells why there is no warrant line where one must stand: at is the start
// of that line.
func (p *parser) missing(text []byte, at int) error {
	next := nextWarrantLine(text, at)
	switch {
	case next < 0:
		return malformed(p.line, "the block does not end with %q", prefix+" end")
	case p.key == "":
		return malformed(lineAt(text, next), "the warrant must start on line 1, or on line 2 after a #! line")
	default:
		return malformed(lineAt(text, next), "stands apart from the block, which broke off before line %d", p.line)
	}
}

func (p *parser) after(text []byte, at span) error {
	// check: WarrantMalformed: a block above the #! line, which then names no interpreter any more
	if bytes.HasPrefix(text[at.end:], []byte("#!")) {
		return malformed(p.line, "is a #! line below the block; it must stand on line 1")
	}
	// check: WarrantMalformed: a second block that another reader lets win
	if next := nextWarrantLine(text, at.end); next >= 0 {
		return malformed(lineAt(text, next), "a %s line after the end of the block", prefix)
	}
	return nil
}

// nextWarrantLine returns the offset of the first warrant line that starts at or
// after a line's start, or -1.
func nextWarrantLine(text []byte, from int) int {
	if bytes.HasPrefix(text[from:], []byte(prefix)) {
		return from
	}
	if i := bytes.Index(text[from:], []byte("\n"+prefix)); i >= 0 {
		return from + i + 1
	}
	return -1
}

func lineAt(text []byte, at int) int { return bytes.Count(text[:at], []byte("\n")) + 1 }

// parser reads the block line by line.
type parser struct {
	line  int    // the number of the line in the script
	key   string // the key of the line before
	lines int
	bytes int
	w     *Warrant
}

// follows gives the keys that may come after a key. The empty key stands before
// the first line.
func follows(key string) []string {
	switch key {
	case "":
		return []string{"v1"}
	case "v1":
		return []string{"profile"}
	case "profile":
		return []string{"phase"}
	case "phase":
		return []string{"serial"}
	case "serial":
		return []string{"not-before", "not-after"}
	case "not-before":
		return []string{"not-after"}
	case "not-after":
		return []string{"leave-sha256", "uninstall-sha256", "target"}
	case "leave-sha256":
		return []string{"uninstall-sha256", "target"}
	case "uninstall-sha256":
		return []string{"target"}
	case "target":
		return []string{"target", "param", "timeout", "end"}
	case "param":
		return []string{"param", "timeout", "end"}
	case "timeout":
		return []string{"end"}
	default:
		return nil
	}
}

// read takes one line, which starts with the prefix. ended says that the line has
// its line feed.
func (p *parser) read(line string, ended bool) error {
	p.lines++
	p.bytes += len(line) + 1
	// check: WarrantMalformed: lines in such number that a shell reads them for minutes
	if p.lines > MaxLines {
		return malformed(p.line, "the block has more than %d lines", MaxLines)
	}
	// check: WarrantMalformed: a block that a shell reads for minutes
	if p.bytes > MaxBytes {
		return malformed(p.line, "the block has more than %d bytes", MaxBytes)
	}
	if err := checkLine(line, ended); err != nil {
		return malformed(p.line, "%s", err.What)
	}
	key, value, _ := strings.Cut(strings.TrimPrefix(line, prefix+" "), " ")
	// check: WarrantMalformed: a second line of a kind, a missing one, or an order that is read in two ways
	if allowed := follows(p.key); !slices.Contains(allowed, key) {
		return malformed(p.line, "%.40q stands where %s must", key, strings.Join(allowed, " or "))
	}
	p.key = key
	if err := p.take(key, value); err != nil {
		return malformed(p.line, "%s", err.What)
	}
	return nil
}

// checkLine holds for every line of the block.
func checkLine(line string, ended bool) *wordsError {
	// check: WarrantMalformed: a last line that shells lose
	if !ended {
		return malformedWords("the line has no line feed")
	}
	for i := range len(line) {
		// check: WarrantMalformed: tab, CR, and letters that look like others
		if line[i] < ' ' || line[i] > '~' {
			return malformedWords("byte 0x%02x; only printable ASCII may stand in the block", line[i])
		}
	}
	// check: WarrantMalformed: a second spelling of the same words
	if !strings.HasPrefix(line, prefix+" ") || strings.Contains(line, "  ") || strings.HasSuffix(line, " ") {
		return malformedWords("words are separated by one space each, and none stands at the end")
	}
	// check: WarrantMalformed: a template that a controller would expand after the signature was made
	if strings.Contains(line, "{{") {
		return malformedWords("holds {{, which is taken for a template")
	}
	return nil
}

// wordsError is a fault of words whose line is not known yet.
type wordsError = decision.Error

func malformedWords(format string, args ...any) *wordsError {
	return decision.Errorf(decision.WarrantMalformed, format, args...)
}
