package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const pageWidth = 100

// plainText renders a page of Markdown, as docs/ writes it, for a terminal: headings underlined, code
// indented, the rows of a table as entries.
func plainText(page string) string {
	p := plainPage{}
	for line := range strings.Lines(page) {
		p.line(strings.TrimRight(line, "\r\n"))
	}
	p.flush()
	return p.out.String()
}

type plainPage struct {
	out   strings.Builder
	text  []string // lines of the paragraph or list item being read
	heads []string // of the table being read
	code  bool
}

func (p *plainPage) line(line string) {
	fence := strings.HasPrefix(strings.TrimSpace(line), "```")
	switch {
	case fence:
		p.flush()
		p.code = !p.code
	case p.code:
		p.out.WriteString("    " + line + "\n")
	case strings.HasPrefix(line, "|"):
		p.flush()
		p.row(cells(line))
		return
	case strings.HasPrefix(line, "#"):
		p.flush()
		p.heading(line)
	case line == "":
		p.flush()
		p.out.WriteString("\n")
	case listItem(line):
		p.flush()
		p.text = []string{line}
	default:
		p.text = append(p.text, strings.TrimSpace(line))
	}
	p.heads = nil
}

// flush writes the paragraph that was read, wrapped anew.
func (p *plainPage) flush() {
	if len(p.text) == 0 {
		return
	}
	text := inline(strings.Join(p.text, " "))
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	if mark, _, _ := strings.Cut(strings.TrimLeft(text, " "), " "); listItem(text) {
		indent += strings.Repeat(" ", len(mark)+1)
	}
	p.out.WriteString(wrap(text, indent, pageWidth) + "\n")
	p.text = nil
}

func (p *plainPage) heading(line string) {
	title := strings.TrimLeft(line, "#")
	level := len(line) - len(title)
	title = inline(strings.TrimSpace(title))
	p.out.WriteString(title + "\n")
	if level <= 2 {
		p.out.WriteString(strings.Repeat("=-"[level-1:level], utf8.RuneCountInString(title)) + "\n")
	}
}

// row writes a row as an entry: its first cell, and below it the others with the heads of their columns.
func (p *plainPage) row(row []string) {
	switch {
	case p.heads == nil:
		p.heads = row
		return
	case strings.Trim(strings.Join(row, ""), ":- ") == "": // the line below the heads
		return
	}
	p.out.WriteString("  " + inline(row[0]) + "\n")
	for i, cell := range row[1:] {
		if cell == "" {
			continue
		}
		text := inline(cell)
		if i+1 < len(p.heads) && p.heads[i+1] != "" && len(row) > 2 {
			text = inline(p.heads[i+1]) + ": " + text
		}
		p.out.WriteString("      " + wrap(text, "      ", pageWidth-6) + "\n")
	}
}

// cells splits a row at the bars that no backslash guards.
func cells(line string) []string {
	const guarded = "\x00"
	line = strings.Trim(strings.ReplaceAll(strings.TrimSpace(line), `\|`, guarded), "|")
	row := strings.Split(line, "|")
	for i, cell := range row {
		row[i] = strings.TrimSpace(strings.ReplaceAll(cell, guarded, "|"))
	}
	return row
}

func listItem(line string) bool {
	return regexp.MustCompile(`^ *([-*]|[0-9]+\.) `).MatchString(line)
}

// inline drops the marks for bold text and shows where links lead: to a topic, or into the web.
func inline(text string) string {
	text = strings.ReplaceAll(text, "**", "")
	return regexp.MustCompile(`\[([^\]]*)\]\(([^()\s]*)\)`).ReplaceAllStringFunc(text, func(link string) string {
		label, target, _ := strings.Cut(strings.TrimSuffix(link[1:], ")"), "](")
		topic, page := strings.CutSuffix(target, ".md")
		switch {
		case strings.Contains(target, "://"):
			return label + " (" + target + ")"
		case page && !strings.Contains(topic, "/"):
			return label + " (help " + topic + ")"
		}
		return label
	})
}

// wrap breaks a text at spaces so that lines are at most width wide where that can be; all but the first
// begin with indent.
func wrap(text, indent string, width int) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		size := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			out.WriteString(lead)
			column = len(lead)
		case column+1+size > width:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += size
	}
	return out.String()
}
