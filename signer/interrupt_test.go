package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// A signer that is killed at any step of writing leaves the old file or the new one, whole.
func TestAKilledSignerLeavesAWholeFile(t *testing.T) {
	strace := testkit.Tool(t, "strace")
	w := newWorld(t)
	key := w.key("alice", w.alice)
	signed := w.hostwarrant("sign", w.write("p.yaml", plainProfile), "--key", key)
	if signed.code != exitDone {
		t.Fatal(signed.err)
	}
	program := filepath.Join(programDir(t), "hostwarrant")
	for _, step := range []string{"fsync", "fchmodat", "renameat"} {
		t.Run(step, func(t *testing.T) {
			path := w.write("p.yaml", plainProfile)
			cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", "/dev/null", "-e", "inject="+step+":error=EIO:signal=KILL", program, "sign", "-i", path, "--key", key)
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Fatalf("it was not killed: %s", out)
			}
			if got := w.read(path); got != plainProfile {
				t.Errorf("the file holds\n%s", got)
			}
		})
	}
	// The near miss: with nothing in its way it writes what it printed.
	path := w.write("p.yaml", plainProfile)
	if out, err := exec.CommandContext(t.Context(), program, "sign", "-i", path, "--key", key).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := w.read(path); got != signed.out {
		t.Errorf("want what sign prints, got\n%s", got)
	}
}

// An error at each step of writing is exit 3, leaves the old file, and nothing beside it.
func TestASignerThatCannotWriteLeavesNothing(t *testing.T) {
	strace := testkit.Tool(t, "strace")
	w := newWorld(t)
	key := w.key("alice", w.alice)
	program := filepath.Join(programDir(t), "hostwarrant")
	for _, step := range []string{"fsync", "fchmodat", "renameat"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			path := testkit.WriteFile(t, dir, "p.yaml", []byte(plainProfile))
			cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", "/dev/null", "-e", "inject="+step+":error=EIO", program, "sign", "-i", path, "--key", key)
			if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUndecided {
				t.Errorf("want exit 3, got %v\n%s", err, out)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 || w.read(path) != plainProfile {
				t.Errorf("%v: %v, %s", err, entries, w.read(path))
			}
		})
	}
}
