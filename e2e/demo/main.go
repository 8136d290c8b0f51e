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
	if err != nil {
		fmt.Fprintf(stderr, "demo: error: %v\n", err)
		return 1
	}
	return 0
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
		if err != nil { // show what the programs said, and leave nothing
			fmt.Fprint(stdout, l.Logs(10))
			err = errors.Join(err, l.Close())
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
