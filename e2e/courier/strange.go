//go:build linux

package courier

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// StrangeFile is where a strange shim leaves a line each time it runs.
const StrangeFile = "/tmp/ran"

// StrangeShim is the checkout's shim directory, for a host's ShimDir, with that program in the shim's place.
func StrangeShim(t testing.TB, program string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(testkit.Root(t), "shim"))))
	testkit.WriteFile(t, dir, "kpssh-shim", []byte("#!/bin/sh\necho ran >>"+StrangeFile+"\n"+program))
	return dir
}
