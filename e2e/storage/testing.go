//go:build linux

package storage

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Start is New for a test, with the program from the cache; it is gone when the test ends.
func Start(t testing.TB, l *lab.Lab, cp *lab.ControlPlane) *Server {
	t.Helper()
	s, err := New(t.Context(), l, cp, Built(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Built is the path of the program.
func Built(t testing.TB) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(testkit.Root(t), "e2e", "storage", "server", "build.sh"), "--print").Output()
	if err != nil {
		testkit.Missing(t, "the storage stand-in is not built; run: e2e/storage/server/build.sh")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "storage")
}
