package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
)

// Modes of what a host remembers: root's alone.
const (
	stateMode = 0o700
	markMode  = 0o600
)

// hostState is where actions on a host's state are carried out: below root, which is / but in tests.
type hostState struct{ root string }

func (h hostState) at(path string) string { return filepath.Join(h.root, filepath.FromSlash(path)) }

// carryOut does one action of a plan.
func (h hostState) carryOut(a hostsetup.Action) error {
	path := h.at(a.Path)
	switch a.Deed {
	case hostsetup.MakeDirectory:
		return os.Mkdir(path, stateMode)
	case hostsetup.MakeRoots:
		return errors.Join(os.Chown(path, 0, 0), os.Chmod(path, stateMode))
	case hostsetup.SetAside:
		return h.aside(path, h.at(a.To))
	case hostsetup.WriteFile:
		return replaceDurably(path, a.Content)
	}
	return fmt.Errorf("%q is nothing that can be done", a.Deed)
}

// aside moves a file and never over another.
func (h hostState) aside(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), stateMode); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s is there already", to)
	}
	return errors.Join(os.Rename(from, to), syncDirectory(filepath.Dir(from)), syncDirectory(filepath.Dir(to)))
}

// replaceDurably is on disk when it returns, whole: a mark that a power cut halves locks its profile out.
func replaceDurably(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, stateMode); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".hostwarrant-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(markMode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDirectory(dir)
}

func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
