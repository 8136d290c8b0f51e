//go:build linux && amd64

package shim

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

// TestACallThatFails lets each step of a run fail with EIO, one after the other. Before the
// script runs the answer is 22, and nothing ran; from then on the run goes to its end.
func TestACallThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("TestADiskThatFails lets each kind of call fail")
	}
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	older := w.script(script.Join, 5)
	w.mustSend(older.sent, envelope.ExitOK)
	w.settle()
	newer := w.script(script.Join, 6)
	w.underEachShell(t, func(t *testing.T) { eachCallFails(t, w, newer, older) })
}

func eachCallFails(t *testing.T, w *world, newer, older run) {
	t.Helper()
	final := w.final(newer.sent)
	steps := w.steps(newer.sent)
	started := false
	for n, step := range steps {
		if step.Path == ran {
			started = true
		}
		// mv tries first to rename where nothing may stand
		if step.Path == ran || step.Call == "rename" && steps[n+1] == step {
			continue
		}
		w.back(w.past)
		answer, err := shimhost.Watch(newer.sent, shimhost.Watcher{Before: func(i int, _ shimhost.Step) syscall.Errno {
			if i == n+1 {
				return syscall.EIO
			}
			return 0
		}}, append(places(), ran)...)
		if err != nil {
			t.Fatal(err)
		}
		had := w.hasRun()
		at := fmt.Sprintf("step %d, %s fails", n+1, step)
		want, runs := envelope.ExitState, 0
		if started {
			want, runs = envelope.ExitOK, 1
		}
		if answer.Code != want || len(had) != runs {
			t.Errorf("%s: answered %d with %d scripts run, not %d with %d: %s", at, answer.Code, len(had), want, runs, answer.Stderr)
		}
		if want != envelope.ExitOK && !saysDisk(answer.Stderr) {
			t.Errorf("%s: stderr says %q", at, answer.Stderr)
		}
		w.forget()
		w.afterRun(at, newer, had, final, &older)
	}
}

// saysDisk: one line that tells where to look.
func saysDisk(stderr string) bool {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	last := lines[len(lines)-1]
	return strings.HasPrefix(last, "kpssh-shim: ") && strings.Contains(last, shimhost.State) && strings.Contains(last, " cannot be ")
}

// TestADiskThatTakesNothing: full, and read-only. The answer is 22, nothing runs and the
// mark stays; with the disk mended the host goes on.
func TestADiskThatTakesNothing(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	w.mustSend(w.script(script.Join, 5).sent, envelope.ExitOK)
	w.mustSend(w.script(script.Leave, 5).sent, envelope.ExitOK)
	w.underEachShell(t, func(t *testing.T) { takesNothing(t, w) })
}

func takesNothing(t *testing.T, w *world) {
	t.Helper()
	mark := w.mark()
	for name, broken := range map[string]struct{ break_, mend func() error }{
		"full":      {fill, empty},
		"read-only": {func() error { return remount("ro") }, func() error { return remount("rw") }},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.forget()
			if err := broken.break_(); err != nil {
				t.Fatal(err)
			}
			for _, r := range []run{w.script(script.Join, 6), w.script(script.Leave, 6), w.script(script.Join, 5)} {
				if answer := w.send(r.sent); answer.Code != envelope.ExitState || !saysDisk(answer.Stderr) {
					t.Errorf("%s of serial %d answers %d: %s", r.phase, r.serial, answer.Code, answer.Stderr)
				}
			}
			for kind, s := range w.statements(w.host.Root) {
				if kind == "roots" {
					continue // names a root twice
				}
				if answer := w.send(w.bring(s)); answer.Code != envelope.ExitState || !saysDisk(answer.Stderr) {
					t.Errorf("statement %s answers %d: %s", kind, answer.Code, answer.Stderr)
				}
			}
			if ran := w.hasRun(); len(ran) > 0 || w.mark() != mark {
				t.Errorf("%q ran, and the mark went from %q to %q", ran, mark, w.mark())
			}
			if err := broken.mend(); err != nil {
				t.Fatal(err)
			}
			w.mustSend(w.script(script.Join, 5).sent, envelope.ExitOK)
		})
	}
}

const filler = shimhost.State + "/filler"

// fill leaves no room on the disk of the state: not one block, and no name.
func fill() error {
	if err := syscall.Mount("tmpfs", shimhost.State, "tmpfs", syscall.MS_REMOUNT, "mode=700,size=256k"); err != nil {
		return err
	}
	file, err := os.Create(filler)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	return file.Close()
}

func empty() error {
	if err := os.Remove(filler); err != nil {
		return err
	}
	return syscall.Mount("tmpfs", shimhost.State, "tmpfs", syscall.MS_REMOUNT, "mode=700,size=64m")
}

func remount(how string) error {
	flags := uintptr(syscall.MS_REMOUNT)
	if how == "ro" {
		flags |= syscall.MS_RDONLY
	}
	return syscall.Mount("tmpfs", shimhost.State, "tmpfs", flags, "")
}
