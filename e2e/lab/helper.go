//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// helperWord as first argument makes a program that uses this package one of the lab's own processes.
const helperWord = "hostwarrant-lab-helper"

const (
	helperWatchdog = "watchdog"
	helperHost     = "host"
)

// Helper says that the program calls HelperMain first thing in main, which New requires: the lab starts the program
// again for its watchdog and as the first process of each host, and would otherwise run it in circles.
type Helper struct{ exe string }

// HelperMain runs the lab's part when this process was started for it, and then returns its exit code and true: the
// caller exits with that code. In any other process it returns the Helper that New wants, and false.
func HelperMain(args []string) (helper Helper, code int, ran bool) {
	if len(args) < 4 || args[1] != helperWord {
		return Helper{exe: "/proc/self/exe"}, 0, false
	}
	var err error
	switch args[2] {
	case helperWatchdog:
		err = runWatchdog(os.Stdin, args[3:])
	case helperHost:
		if cgroups := args[4:]; len(cgroups) > 0 {
			err = enterCgroups(cgroups) // comes back here without them
			break
		}
		err = runHost()
	default:
		err = fmt.Errorf("unknown helper %q", args[2])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", args[2], err)
		return Helper{}, 1, true
	}
	return Helper{}, 0, true
}

// watchdog is the process that outlives this one, if only to clean up.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startWatchdog starts it. It holds the read end of a pipe whose only write end is in this process, so that it sees
// the end of this process whatever the reason.
func startWatchdog(h Helper, s *state) (*watchdog, error) {
	if h.exe == "" {
		return nil, errors.New("lab.Options.Helper is not set: call lab.HelperMain first in main")
	}
	journal, err := os.Open(journalPath(s.dir)) // handed over open: someone may remove the directory with what is in it
	if err != nil {
		return nil, fmt.Errorf("starting the watchdog: %w", err)
	}
	log, err := os.Create(s.path("log", "watchdog.log"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the watchdog: %w", err), journal.Close())
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the watchdog: %w", err), journal.Close(), log.Close())
	}
	cmd := exec.Command(h.exe, helperWord, helperWatchdog, s.dir)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, log, log
	cmd.ExtraFiles = []*os.File{journal} // 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if err := errors.Join(err, r.Close(), log.Close(), journal.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the watchdog: %w", err), w.Close())
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// dismiss tells the watchdog that there is nothing to do, and waits for its end.
func (w *watchdog) dismiss() error {
	if w == nil || w.pipe == nil {
		return nil
	}
	_, err := w.pipe.Write([]byte{'.'})
	err = errors.Join(err, w.pipe.Close(), w.cmd.Wait())
	w.pipe = nil
	if err != nil {
		return fmt.Errorf("dismissing the watchdog: %w", err)
	}
	return nil
}

// runWatchdog waits for the end of its parent. A byte before the end of the pipe dismisses it.
func runWatchdog(pipe io.Reader, args []string) error {
	if len(args) != 1 {
		return errors.New("want the state directory")
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	journal := os.NewFile(3, "journal")
	n, err := pipe.Read(make([]byte, 1))
	if n > 0 {
		return journal.Close()
	}
	if !errors.Is(err, io.EOF) {
		return errors.Join(err, journal.Close())
	}
	if err := Down(args[0]); err != nil {
		return errors.Join(err, journal.Close())
	}
	// Where Down found the directory, this finds nothing more to do.
	entries, err := parseJournal(journal)
	if err := errors.Join(err, journal.Close()); err != nil {
		return err
	}
	return undo(args[0], entries)
}
