//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

func main() {
	helper, code, ran := lab.HelperMain(os.Args)
	if ran {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code = run(ctx, helper, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, helper lab.Helper, args []string, stdout, stderr io.Writer) int {
	dir, err := lab.DemoStateDir()
	if err == nil {
		switch {
		case len(args) == 1 && args[0] == "up":
			err = up(ctx, helper, dir, stdout)
		case len(args) == 1 && args[0] == "down":
			err = down(dir, stdout)
		default:
			fmt.Fprintln(stderr, "usage: demo up|down")
			return 2
		}
	}
	return report(err, stderr)
}

// errInterrupted says that somebody ended the story, and that all of it was taken down.
var errInterrupted = errors.New("interrupted; all that the demonstration had started on this machine is stopped and removed")

// report gives the exit code: 130 is what a shell makes of Ctrl-C.
func report(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case err == errInterrupted: //nolint:errorlint // joined with what could not be taken down it is a failure
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return 130
	default:
		fmt.Fprintf(stderr, "demo: error: %v\n", err)
		return 1
	}
}

func down(dir string, stdout io.Writer) error {
	if err := lab.Down(dir); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "The demonstration is down; nothing of it is left.")
	return nil
}

// up plays the story in a fresh lab. A lab that an earlier call left is taken down first.
func up(ctx context.Context, helper lab.Helper, dir string, stdout io.Writer) (err error) {
	began := time.Now()
	if err := lab.Down(dir); err != nil {
		return err
	}
	l, err := lab.New(ctx, lab.Options{Helper: helper, StateDir: dir})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = takeDown(ctx, l, stdout, err)
		}
	}()
	s := &story{lab: l, dir: filepath.Join(dir, "story"), out: stdout}
	if err := s.play(ctx); err != nil {
		return err
	}
	if err := l.Detach(); err != nil {
		return err
	}
	s.farewell(time.Since(began))
	return nil
}

// takeDown leaves nothing. What the programs said is shown where the story failed, and not where somebody ended it.
func takeDown(ctx context.Context, l *lab.Lab, stdout io.Writer, err error) error {
	interrupted := ctx.Err() != nil
	if !interrupted {
		fmt.Fprint(stdout, l.Logs(10))
	}
	closing := l.Close()
	if interrupted && closing == nil {
		return errInterrupted
	}
	return errors.Join(err, closing)
}
