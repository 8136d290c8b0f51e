//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// downLimit bounds Down as a whole; two SIGTERM rounds of stopGrace and a good reserve.
const downLimit = 30 * time.Second

// Down undoes the lab that the state directory describes, whoever made it, and removes the directory. It may be
// called any number of times; where there is no lab it does nothing.
func Down(dir string) error {
	if _, err := os.Stat(journalPath(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := lockState(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", dir, err)
	}
	entries, err := readJournal(dir)
	if errors.Is(err, fs.ErrNotExist) { // another Down was faster
		return unlock()
	}
	if err == nil {
		err = undo(dir, entries)
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err := errors.Join(err, unlock()); err != nil {
		return fmt.Errorf("taking down the lab in %s: %w", dir, err)
	}
	return nil
}

func undo(dir string, entries []entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), downLimit)
	defer cancel()
	var first, last, links, groups []entry
	id := ""
	for _, e := range entries {
		switch {
		case e.Kind == kindLab:
			id = e.Name
		case e.Kind == kindLink:
			links = append(links, e)
		case e.Kind == kindCgroup:
			groups = append(groups, e)
		case e.Kind == kindProcess && e.Name == "etcd":
			last = append(last, e) // it holds the data of the others, so it goes after them
		case e.Kind == kindProcess:
			first = append(first, e)
		}
	}
	errs := []error{endProcesses(ctx, first), endProcesses(ctx, last), endMarked(ctx, id)}
	slices.Reverse(links)
	for _, e := range links {
		errs = append(errs, deleteLink(ctx, e.Name))
	}
	for _, e := range groups {
		errs = append(errs, removeCgroup(ctx, e.Name))
	}
	return errors.Join(append(errs, unmountBelow(dir))...)
}

// endProcesses sends SIGTERM to all (a host's first process gets SIGKILL, which is its power switch), waits, and
// sends SIGKILL to those that are left.
func endProcesses(ctx context.Context, all []entry) error {
	for _, e := range all {
		s := syscall.SIGTERM
		if strings.HasPrefix(e.Name, hostPrefix) {
			s = syscall.SIGKILL
		}
		if err := signalEntry(e, s); err != nil {
			return err
		}
	}
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if waitGone(grace, all) == nil {
		return nil
	}
	for _, e := range all {
		if err := signalEntry(e, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return waitGone(ctx, all)
}

// endMarked kills what carries the lab's marker but is not in the journal, until there is nothing left.
func endMarked(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	return until(ctx, nil, "the lab's processes to end", func() error {
		left := marked(id)
		for _, e := range left {
			if err := signalEntry(e, syscall.SIGKILL); err != nil {
				return err
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d left", len(left))
		}
		return nil
	})
}

// signalEntry signals the very process of the entry, never another one that got its number since: the handle is
// taken first (a pidfd where the kernel has them), then the start time is compared.
func signalEntry(e entry, s syscall.Signal) error {
	p, err := os.FindProcess(e.PID)
	if err != nil {
		return fmt.Errorf("stopping %s (pid %d): %w", e.Name, e.PID, err)
	}
	start, err := startTime(e.PID)
	if err == nil && start == e.Start {
		err = p.Signal(s)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return errors.Join(fmt.Errorf("stopping %s (pid %d): %w", e.Name, e.PID, err), p.Release())
		}
	}
	return p.Release()
}

func waitGone(ctx context.Context, all []entry) error {
	return until(ctx, nil, "processes to end", func() error {
		for _, e := range all {
			if start, err := startTime(e.PID); err == nil && start == e.Start {
				return fmt.Errorf("%s (pid %d) is still there", e.Name, e.PID)
			}
		}
		return nil
	})
}

// unmountBelow detaches mounts below the state directory. The lab makes none in this namespace; this is for those
// a person or a test made there, which would otherwise be emptied by the removal of the directory.
func unmountBelow(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("reading mounts: %w", err)
	}
	lines := strings.Split(string(b), "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], dir+"/") {
			continue
		}
		if err := syscall.Unmount(f[4], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", f[4], err)
		}
	}
	return nil
}
