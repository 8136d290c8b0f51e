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
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	return swap(path, target, data, info.Mode().Perm(), func() error {
		now, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, old) {
			return ErrChanged
		}
		return nil
	})
}

// Force writes a file whether or not one exists.
func Force(path string, data []byte, mode fs.FileMode) error {
	return swap(path, path, data, mode, func() error { return nil })
}

func swap(path, target string, data []byte, mode fs.FileMode, check func() error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(target), ".hostwarrant-*")
	if err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := fill(f, data); err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	if err := os.Chmod(f.Name(), mode); err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	if err := check(); err != nil {
		return fmt.Errorf("writing %q: it %w", path, err)
	}
	if err := os.Rename(f.Name(), target); err != nil {
		return fmt.Errorf("writing %q: %v", path, err)
	}
	return nil
}

func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
