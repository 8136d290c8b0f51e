package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Agent starts a real ssh-agent for one test and returns its socket.
func Agent(t testing.TB, flags ...string) string {
	t.Helper()
	// Not t.TempDir(): its names can be longer than a socket's path may be (108 bytes).
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(Tool(t, "ssh-agent"), append([]string{"-D", "-a", socket}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("ssh-agent ended by itself")
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		if time.Now().After(end) {
			t.Fatal("ssh-agent makes no socket")
		}
	}
}
