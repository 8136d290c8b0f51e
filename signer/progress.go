package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress shows on a terminal how far a long command has come. Anywhere else it shows nothing.
type progress struct {
	out   io.Writer // nil: nobody looks
	what  string
	total int
	shown time.Time
}

const (
	// progressFrom is how many steps are worth a line, and progressEvery how often it changes.
	progressFrom  = 20
	progressEvery = 100 * time.Millisecond
	clearLine     = "\r\x1b[K"
)

func (c *cli) progress(what string, total int) *progress {
	p := &progress{what: what, total: total}
	if f, ok := c.err.(*os.File); ok && total >= progressFrom && term.IsTerminal(int(f.Fd())) {
		p.out = f
	}
	return p
}

// step says that done of the steps are done.
func (p *progress) step(done int) {
	if p.out == nil || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.out, "%s%s %d of %d", clearLine, p.what, done, p.total)
}

// end takes the line away.
func (p *progress) end() {
	if p.out != nil && !p.shown.IsZero() {
		fmt.Fprint(p.out, clearLine)
	}
}
