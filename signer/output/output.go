package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrExists is returned by Create for a path where something is already.
var ErrExists = errors.New("exists already")

// ErrChanged is returned by Replace for a file that is no longer what was read.
var ErrChanged = errors.New("was changed by someone else meanwhile")

// Create writes a new file and never touches one that exists.
func Create(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing %q: it %w", path, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	if err := fill(f, data); err != nil {
		return errors.Join(fmt.Errorf("writing %q: %v", path, err), os.Remove(path))
	}
	return nil
}

// Replace swaps a file for another text, keeping its mode, and only if it still holds the old text.
// A symbolic link stays one. Readers see the old file or the new one, never a part.
func Replace(path string, old, data []byte) error {
	if old == nil {
		old = []byte{} // an empty file, not a new one
	}
	return All([]Change{{Path: path, Old: old, Data: data}})
}

// destination is the file behind a path, and the mode it has or gets.
func destination(c Change) (string, fs.FileMode, error) {
	if c.Old == nil {
		_, err := os.Lstat(c.Path)
		if err == nil {
			return "", 0, fmt.Errorf("it %w", ErrExists)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", 0, err
		}
		return c.Path, c.mode(), nil
	}
	target, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return "", 0, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", 0, err
	}
	return target, info.Mode().Perm(), nil
}

// holds wants a file to hold a text.
func holds(path string, text []byte) error {
	now, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, text) {
		return ErrChanged
	}
	return nil
}

// prepare writes a text in full to a new file beside target, and gives its name.
func prepare(target string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".hostwarrant-*")
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(f, data), os.Chmod(f.Name(), mode)); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
