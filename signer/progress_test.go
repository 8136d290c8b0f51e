package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// Somebody who waits at a terminal sees how far it is; a pipe and a short run see nothing of it.
func TestVerifyShowsProgressOnATerminalOnly(t *testing.T) {
	script := testkit.Tool(t, "script")
	w := newWorld(t)
	good := w.profile(goodScripts(), w.signedBy(w.alice, goodScripts()))
	for i := range progressFrom + 5 {
		w.write(fmt.Sprintf("many/%d.json", i), good)
	}
	w.write("few/1.json", good)
	command := func(dir string) string {
		return strings.Join([]string{filepath.Join(programDir(t), "hostwarrant"), "verify", w.path(dir), "--policy", w.policy, "--root", w.pubs}, " ")
	}
	const seen = "verified 1 of 25"
	for name, tt := range map[string]struct {
		line string
		want bool
	}{
		"many files at a terminal":          {command("many"), true},
		"a few files at a terminal":         {command("few"), false},
		"many files, messages into a pipe":  {command("many") + " 2>&1 | cat", false},
		"many files, data into a pipe only": {command("many") + " | cat", true},
	} {
		t.Run(name, func(t *testing.T) {
			// Without -e: the verdict is that of the real clock, and not asked here.
			out, err := exec.CommandContext(t.Context(), script, "-qc", tt.line, "/dev/null").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "SSHJoinProfile/") {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := strings.Contains(string(out), seen); got != tt.want {
				t.Errorf("%q seen: %v\n%q", seen, got, out)
			}
		})
	}
}
