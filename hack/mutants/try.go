package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hostwarrant/hostwarrant/hack/mutants/mark"
)

type verdict string

const (
	survived verdict = "survived"
	killed   verdict = "killed"
	broken   verdict = "broken" // does not build: says nothing about the tests
	hung     verdict = "hung"   // a test ran into its time limit: perhaps only a slow machine
)

type result struct {
	mark    mark.Mark
	verdict verdict
	output  string
}

// tryAll tries each mark in one of as many copies of the tree as there are workers.
func tryAll(ctx context.Context, marks []mark.Mark, workers int, progress func(string)) ([]result, error) {
	todo := make(chan mark.Mark)
	var (
		lock    sync.Mutex
		results []result
		faults  []error
		wait    sync.WaitGroup
	)
	for range min(workers, len(marks)) {
		wait.Go(func() {
			err := work(ctx, todo, func(r result) {
				lock.Lock()
				defer lock.Unlock()
				results = append(results, r)
				progress(fmt.Sprintf("%d/%d %s %v", len(results), len(marks), r.verdict, r.mark))
			})
			lock.Lock()
			defer lock.Unlock()
			faults = append(faults, err)
			for range todo { // a worker that cannot go on must not block the others
			}
		})
	}
	for _, m := range marks {
		todo <- m
	}
	close(todo)
	wait.Wait()
	return results, errors.Join(faults...)
}

func work(ctx context.Context, todo <-chan mark.Mark, done func(result)) error {
	tree, err := copyTree(ctx)
	if err != nil {
		return err
	}
	defer tree.remove()
	for m := range todo {
		r, err := tree.try(ctx, m)
		if err != nil {
			return err
		}
		done(r)
	}
	return nil
}

func (t *tree) try(ctx context.Context, m mark.Mark) (result, error) {
	for _, packages := range [][]string{t.near(m.File), t.far(m.File)} {
		r, err := t.tryOn(ctx, m, packages)
		if err != nil || r.verdict != survived {
			return r, err
		}
	}
	return result{mark: m, verdict: survived}, nil
}

// tryOn runs the tests of packages on the mutant, once these are known to pass without.
func (t *tree) tryOn(ctx context.Context, m mark.Mark, packages []string) (result, error) {
	if err := t.passes(ctx, packages); err != nil {
		return result{}, err
	}
	file := filepath.Join(t.root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(file)
	if err != nil {
		return result{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return result{}, err
	}
	if err := os.WriteFile(file, m.Mutant(source), info.Mode()); err != nil {
		return result{}, err
	}
	// go cannot see that a script which a test runs has changed: no cached results.
	fresh := !strings.HasSuffix(m.File, ".go")
	r := result{mark: m, verdict: survived}
	if output, err := t.test(ctx, fresh, packages); err != nil {
		r.verdict, r.output = judge(output), output
	}
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	return r, os.WriteFile(file, source, info.Mode())
}

// judge tells a test that noticed the mutant from one that never got to say so.
func judge(output string) verdict {
	switch {
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return broken
	case strings.Contains(output, "panic: test timed out after"):
		return hung
	}
	return killed
}

// progressTo prints one line a mutant, in place where that is a terminal.
func progressTo(w io.Writer) func(string) {
	file, isFile := w.(*os.File)
	if isFile {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return func(line string) { fmt.Fprintf(w, "\r\x1b[K%.120s", line) }
		}
	}
	return func(line string) { fmt.Fprintln(w, line) }
}
