package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Required reports whether a missing tool or data set is a failure.
func Required() bool { return os.Getenv("CI") == "true" || os.Getenv("REQUIRE_TOOLS") == "1" }

// Missing skips the test, or fails it where Required.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if Required() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Tool returns the path of a program that the test needs.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "needs %s; run: make deps", name)
	}
	return path
}

// Built is the path of one of our programs, which make build puts into bin/.
func Built(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		Missing(t, "bin/%s is not built; run: make build", name)
	}
	return path
}

// Root is the top of the source tree.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("no caller information")
	}
	dir := filepath.Dir(filepath.Dir(file))
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("source tree: %v", err)
	}
	return dir
}

// CorpusDir is a directory of the public test data, which lies beside a
// checkout in ../shared/corpus and is not part of it.
func CorpusDir(t testing.TB, path string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(Root(t)), "shared", "corpus", filepath.FromSlash(path))
	if _, err := os.Stat(dir); err != nil {
		Missing(t, "public test data is not there: %v", err)
	}
	return dir
}

// Corpus is one file of the public test data.
func Corpus(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(CorpusDir(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// WriteFile writes a file below a test's own directory and returns its path.
func WriteFile(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
