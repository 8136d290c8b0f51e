//go:build linux

package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

func newLab(t *testing.T, dir string) *lab.Lab {
	t.Helper()
	lab.NeedLab(t)
	l, err := lab.New(t.Context(), lab.Options{Helper: shared.Helper(), StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestCloseLeavesNothing(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	before := etc(t)
	l := newLab(t, "")
	h, err := l.StartHost(t.Context(), lab.HostOptions{Name: "host-a", ShimDir: shimDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.StartProgram("stubborn", exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 600 & wait; done")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.SilentHost(); err != nil {
		t.Fatal(err)
	}
	ns := lab.NetNS(t, h.PID())
	if up := look(t, l.ID(), l.StateDir(), ns); len(up.Links) != 2 || len(up.Procs) < 2 || len(up.NetNS) < 2 || len(up.Dir) != 1 || len(up.Mounts) != 0 {
		t.Errorf("while it is up: links %q, processes %q, in its namespace %q, mounts %q", up.Links, up.Procs, up.NetNS, up.Mounts)
	}
	for range 2 { // the second one finds nothing to do
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(machine{Etc: before}, look(t, l.ID(), l.StateDir(), ns)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
	if _, err := l.StartHost(t.Context(), lab.HostOptions{Name: "late", ShimDir: shimDir(t)}); err == nil {
		t.Error("StartHost on a closed lab: got no error")
	}
	if _, err := l.StartControlPlane(t.Context(), lab.ControlPlaneOptions{}); err == nil {
		t.Error("StartControlPlane on a closed lab: got no error")
	}
	if exists(l.StateDir()) != nil {
		t.Error("a closed lab made its state directory again")
	}
	eventually(t, func() string { // one that has closed its channel may not have ended yet
		if n := runtime.NumGoroutine(); n > goroutines {
			return fmt.Sprintf("%d goroutines, %d before", n, goroutines)
		}
		return ""
	})
}

// startChild runs this test program as one that makes a lab in dir and waits.
func startChild(t *testing.T, dir string, env ...string) (cmd *exec.Cmd, id string, ns string) {
	t.Helper()
	lab.NeedLab(t)
	cmd = exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+dir, childVariable+"_SHIM="+shimDir(t))
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var pid int
	if _, serr := fmt.Sscanf(line, "up %s %d\n", &id, &pid); serr != nil {
		t.Fatalf("the child says %q: %v", line, errors.Join(err, serr))
	}
	return cmd, id, lab.NetNS(t, pid)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	for name, removed := range map[string]bool{"with its state directory": false, "its state directory removed by another": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			before := etc(t)
			cmd, id, ns := startChild(t, dir)
			if len(lab.Cgroups(t, id)) == 0 {
				t.Error("its host has no cgroups")
			}
			if removed {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			kill(t, cmd)
			eventually(t, func() string { return cmp.Diff(machine{Etc: before}, look(t, id, dir, ns)) })
		})
	}
}

func TestDetachedLabStaysUntilDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	before := etc(t)
	cmd, id, ns := startChild(t, dir, childVariable+"_DETACH=1")
	kill(t, cmd)
	if up := look(t, id, dir, ns); len(up.Links) != 2 || len(up.Procs) < 1 || len(up.Dir) != 1 {
		t.Errorf("the detached lab is not up: links %q, processes %q", up.Links, up.Procs)
	}
	if _, err := lab.New(t.Context(), lab.Options{Helper: shared.Helper(), StateDir: dir}); !errors.Is(err, lab.ErrUp) {
		t.Errorf("New in the same place: got %v, want %v", err, lab.ErrUp)
	}
	for range 2 {
		if err := lab.Down(dir); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(machine{Etc: before}, look(t, id, dir, ns)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func TestFailedNewLeavesNothing(t *testing.T) {
	lab.NeedLab(t)
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := lab.New(t.Context(), lab.Options{StateDir: dir}); err == nil || !strings.Contains(err.Error(), "HelperMain") {
		t.Errorf("New without helper: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lab.New(ctx, lab.Options{Helper: shared.Helper(), StateDir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("New with an ended context: got %v", err)
	}
	if exists(dir) != nil {
		t.Error("the state directory is left")
	}
}

func TestDownLeavesStrangersAlone(t *testing.T) {
	lab.NeedLab(t)
	dir := t.TempDir()
	if err := lab.Down(dir); err != nil {
		t.Fatal(err)
	}
	if exists(dir) == nil {
		t.Error("Down removed a directory that holds no lab")
	}
	// A journal whose pid belongs to another process by now: this test's own.
	line := fmt.Sprintf(`{"kind":"lab","name":"000000000000"}`+"\n"+`{"kind":"process","name":"etcd","pid":%d,"start":1}`+"\n"+`{"kind":"pro`, os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "journal"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lab.Down(dir); err != nil {
		t.Fatal(err)
	}
}

func TestDemoHasItsPlaceInTheCache(t *testing.T) {
	for name, c := range map[string]struct{ own, xdg, want string }{
		"our own variable":   {"/a", "/b", "/a/demo"},
		"the user's setting": {"", "/b", "/b/hostwarrant/demo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOSTWARRANT_CACHE", c.own)
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			if got, err := lab.DemoStateDir(); err != nil || got != c.want {
				t.Errorf("DemoStateDir: got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
