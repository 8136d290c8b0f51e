package output

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestAllWritesEveryFile(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "fresh")
	write(t, old, "a", 0o600)
	err := All([]Change{{Path: old, Old: []byte("a"), Data: []byte("A")}, {Path: fresh, Data: []byte("B")}})
	if err != nil {
		t.Fatal(err)
	}
	if read(t, old) != "A" || read(t, fresh) != "B" {
		t.Errorf("got %q and %q", read(t, old), read(t, fresh))
	}
	onlyFiles(t, dir, "old", "fresh")
}

// Whichever file fails, and for whatever cause, those before it hold again what they held.
func TestAllWritesNothingWhereOneFails(t *testing.T) {
	for name, tt := range map[string]struct {
		last func(dir string) Change
		want error
	}{
		"another text than was read": {func(dir string) Change {
			return Change{Path: filepath.Join(dir, "b"), Old: []byte("else"), Data: []byte("B")}
		}, ErrChanged},
		"a file where a new one should go": {func(dir string) Change {
			return Change{Path: filepath.Join(dir, "b"), Data: []byte("B")}
		}, ErrExists},
		"no such directory": {func(dir string) Change {
			return Change{Path: filepath.Join(dir, "none", "b"), Data: []byte("B")}
		}, nil},
		"a directory in the way": {func(dir string) Change {
			return Change{Path: dir, Old: []byte("x"), Data: []byte("B")}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, b, fresh := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "fresh")
			write(t, a, "a", 0o640)
			write(t, b, "b", 0o600)
			err := All([]Change{{Path: a, Old: []byte("a"), Data: []byte("A")}, {Path: fresh, Data: []byte("F")}, tt.last(dir)})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("want %v, got %v", tt.want, err)
			}
			if read(t, a) != "a" || read(t, b) != "b" {
				t.Errorf("the files hold %q and %q", read(t, a), read(t, b))
			}
			onlyFiles(t, dir, "a", "b")
		})
	}
}

// A file that appears between preparing and placing is not replaced.
func TestPlaceNewNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	s, err := stage(Change{Path: path, Data: []byte("mine")})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "theirs", 0o600)
	if err := s.place(); !errors.Is(err, ErrExists) {
		t.Errorf("want ErrExists, got %v", err)
	}
	if err := s.discard(); err != nil || read(t, path) != "theirs" {
		t.Errorf("%v, %q", err, read(t, path))
	}
	onlyFiles(t, dir, "f")
}
