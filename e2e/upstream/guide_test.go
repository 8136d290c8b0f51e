//go:build linux

package upstream

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// guide is a page whose commands are run. A block marked sh is run as it stands, once for each
// time that the test asks for it.
type guide struct {
	blocks map[string][]string // by heading; those before the first stand under ""
	used   map[string]bool     // by heading and number
}

func readGuide(t *testing.T, path string) *guide {
	t.Helper()
	g := &guide{blocks: map[string][]string{}, used: map[string]bool{}}
	heading, block, inside := "", "", false
	for line := range strings.Lines(read(t, path)) {
		switch {
		case inside && line == "```\n":
			inside = false
			g.blocks[heading] = append(g.blocks[heading], block)
		case inside:
			block += line
		case line == "```sh\n":
			inside, block = true, ""
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(strings.TrimPrefix(line, "## "))
		}
	}
	return g
}

// block is the nth block below a heading, from 0.
func (g *guide) block(t *testing.T, heading string, n int) string {
	t.Helper()
	if n >= len(g.blocks[heading]) {
		t.Fatalf("there is no block %d below %q", n, heading)
	}
	g.used[heading+string(rune('0'+n))] = true
	return g.blocks[heading][n]
}

// allUsed wants every block of the page to have been run.
func (g *guide) allUsed(t *testing.T) {
	t.Helper()
	for heading, blocks := range g.blocks {
		for n := range blocks {
			if !g.used[heading+string(rune('0'+n))] {
				t.Errorf("block %d below %q was never run", n, heading)
			}
		}
	}
}

// desk is where an operator sits: a directory with files, and programs that are found first.
type desk struct {
	dir   string
	guide *guide
	// instead are values of the page and what stands for them here.
	instead *strings.Replacer
}

const deskLimit = 3 * time.Minute

// follow runs a block of the guide with its preface, and gives all that it prints.
func (d *desk) follow(t *testing.T, heading string, n int) string {
	t.Helper()
	return d.run(t, d.guide.block(t, "", 0)+d.guide.block(t, heading, n))
}

// run runs commands as somebody who copies them would.
func (d *desk) run(t *testing.T, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deskLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", d.instead.Replace(commands))
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(d.dir, "bin")+":"+filepath.Dir(testkit.Built(t, "hostwarrant"))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	return string(out)
}
