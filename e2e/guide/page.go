package guide

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Page is a page whose commands are run. A block marked sh is run as it stands, once for each time that
// the test asks for it.
type Page struct {
	blocks map[string][]string // by heading; those before the first stand under ""
	used   map[string]bool     // by heading and number
}

// Read reads a page of docs/.
func Read(t testing.TB, path string) *Page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{blocks: map[string][]string{}, used: map[string]bool{}}
	heading, block, inside := "", "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case inside && line == "```\n":
			inside = false
			p.blocks[heading] = append(p.blocks[heading], block)
		case inside:
			block += line
		case line == "```sh\n":
			inside, block = true, ""
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(strings.TrimPrefix(line, "## "))
		}
	}
	return p
}

// Block is the nth block below a heading, from 0.
func (p *Page) Block(t testing.TB, heading string, n int) string {
	t.Helper()
	if n >= len(p.blocks[heading]) {
		t.Fatalf("there is no block %d below %q", n, heading)
	}
	p.used[heading+strconv.Itoa(n)] = true
	return p.blocks[heading][n]
}

// preface is what stands before the first heading, for every block.
func (p *Page) preface(t testing.TB) string {
	t.Helper()
	if len(p.blocks[""]) == 0 {
		return ""
	}
	return p.Block(t, "", 0)
}

// AllUsed wants every block of the page to have been run.
func (p *Page) AllUsed(t testing.TB) {
	t.Helper()
	for heading, blocks := range p.blocks {
		for n := range blocks {
			if !p.used[heading+strconv.Itoa(n)] {
				t.Errorf("block %d below %q was never run", n, heading)
			}
		}
	}
}
