package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
)

// Change is a file to be written; Old is nil for a new one.
type Change struct {
	Path      string
	Old, Data []byte
	Mode      fs.FileMode // of a new file; 0 is 0644. One that is there keeps its own.
}

// All writes several files or none: each is prepared in full beside its place before the first takes
// it, and if one cannot take its place, those before it are put back.
//
// An interrupt (^C) waits until that is over: the command is at its end anyway, and nothing is left
// lying about.
func All(changes []Change) (err error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	var ready []staged
	defer func() {
		for _, s := range ready {
			err = errors.Join(err, s.discard())
		}
	}()
	for _, c := range changes {
		s, err := stage(c)
		if err != nil {
			return err
		}
		ready = append(ready, s)
	}
	for i := range ready {
		if err := ready[i].place(); err != nil {
			return errors.Join(err, putBack(ready[:i]))
		}
	}
	return nil
}

func putBack(done []staged) error {
	var all error
	for i := len(done) - 1; i >= 0; i-- {
		all = errors.Join(all, done[i].undo())
	}
	return all
}

// newMode is the mode of files that hold nothing secret.
const newMode fs.FileMode = 0o644

// mode is what a new file gets.
func (c Change) mode() fs.FileMode {
	if c.Mode == 0 {
		return newMode
	}
	return c.Mode
}

// staged is a new text that lies ready beside the file it is for.
type staged struct {
	Change
	target, temp string
	placed       bool
}

func stage(c Change) (staged, error) {
	target, mode, err := destination(c)
	if err != nil {
		return staged{}, fmt.Errorf("writing %q: %w", c.Path, err)
	}
	temp, err := prepare(target, c.Data, mode)
	if err != nil {
		return staged{}, fmt.Errorf("writing %q: %v", c.Path, err)
	}
	return staged{Change: c, target: target, temp: temp}, nil
}

// place gives the new text its name, if nobody changed the old one meanwhile.
func (s *staged) place() error {
	if err := s.unchanged(); err != nil {
		return fmt.Errorf("writing %q: it %w", s.Path, err)
	}
	if s.Old == nil {
		return s.placeNew()
	}
	if err := os.Rename(s.temp, s.target); err != nil {
		return fmt.Errorf("writing %q: %v", s.Path, err)
	}
	s.placed = true
	return nil
}

// placeNew fails where a file has appeared, as a rename would not. Not every file system has links.
func (s *staged) placeNew() error {
	err := os.Link(s.temp, s.target)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Create(s.target, s.Data, s.mode())
	}
	if err != nil {
		return fmt.Errorf("writing %q: it %w", s.Path, ErrExists)
	}
	return nil
}

func (s *staged) unchanged() error {
	if s.Old == nil {
		return nil
	}
	return holds(s.target, s.Old)
}

// undo brings the old text back, or removes the new file.
func (s *staged) undo() error {
	if s.Old == nil {
		return os.Remove(s.target)
	}
	info, err := os.Stat(s.target)
	if err != nil {
		return err
	}
	temp, err := prepare(s.target, s.Old, info.Mode().Perm())
	if err != nil {
		return err
	}
	return os.Rename(temp, s.target)
}

// discard removes what lies ready and was not used.
func (s *staged) discard() error {
	if s.placed && s.Old != nil {
		return nil // the rename took it
	}
	err := os.Remove(s.temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
