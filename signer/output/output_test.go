package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// onlyFiles fails where something was left behind.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Errorf("want %v in the directory, got %v", names, entries)
	}
}

func TestCreateMakesANewFileAndNeverReplacesOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Create(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("b"), 0o600); !errors.Is(err, ErrExists) {
		t.Errorf("want ErrExists, got %v", err)
	}
	if got := read(t, path); got != "a" {
		t.Errorf("the file holds %q", got)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Create(filepath.Join(dir, "link"), []byte("b"), 0o600); !errors.Is(err, ErrExists) {
		t.Errorf("want ErrExists for a link to nothing, got %v", err)
	}
	if err := Create(filepath.Join(dir, "none", "f"), []byte("b"), 0o600); err == nil || errors.Is(err, ErrExists) {
		t.Errorf("want another error for a missing directory, got %v", err)
	}
	onlyFiles(t, dir, "f", "link")
}

func TestReplaceKeepsModeAndLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "f"), filepath.Join(dir, "link")
	write(t, path, "old", 0o600)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	if err := Replace(link, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "new" {
		t.Errorf("the file holds %q", got)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode changed: %v %v", info, err)
	}
	onlyFiles(t, dir, "f", "link")
}

func TestReplaceRefusesAFileThatChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "changed", 0o600)
	if err := Replace(path, []byte("old"), []byte("new")); !errors.Is(err, ErrChanged) {
		t.Errorf("want ErrChanged, got %v", err)
	}
	if got := read(t, path); got != "changed" {
		t.Errorf("the file holds %q", got)
	}
	onlyFiles(t, dir, "f")
	if err := Replace(filepath.Join(dir, "none"), nil, []byte("new")); err == nil {
		t.Error("want an error for a missing file")
	}
}
