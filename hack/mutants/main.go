package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/hostwarrant/hostwarrant/hack/mutants/mark"
)

const (
	exitKilled   = 0
	exitSurvived = 1
	exitUsage    = 2
	exitUndone   = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	list := flags.Bool("list", false, "print the marks and run nothing")
	pattern := flags.String("run", "", "take only marks whose line in -list matches this `regexp`")
	workers := flags.Int("j", 1, "run this many mutants at a time")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitKilled
		}
		return exitUsage
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil || flags.NArg() > 0 || *workers < 1 {
		fmt.Fprintf(stderr, "mutants: usage: mutants [-list] [-run REGEXP] [-j N] %v\n", err)
		return exitUsage
	}
	marks, err := marksOf(".", wanted)
	if err != nil {
		fmt.Fprintf(stderr, "mutants: %v\n", err)
		return exitUndone
	}
	if *list {
		for _, m := range marks {
			fmt.Fprintln(stdout, m)
		}
		return exitKilled
	}
	return report(ctx, marks, *workers, stdout, stderr)
}

func marksOf(root string, wanted *regexp.Regexp) ([]mark.Mark, error) {
	found, err := mark.InTree(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	for _, problem := range found.Problems {
		if wanted.MatchString(problem.String()) {
			return nil, fmt.Errorf("%v", problem)
		}
	}
	var marks []mark.Mark
	for _, m := range found.Marks {
		if wanted.MatchString(m.String()) {
			marks = append(marks, m)
		}
	}
	if len(marks) == 0 {
		return nil, errors.New("no marked check matches; nothing was tried")
	}
	return marks, nil
}

func report(ctx context.Context, marks []mark.Mark, workers int, stdout, stderr io.Writer) int {
	results, err := tryAll(ctx, marks, workers, progressTo(stderr))
	for _, r := range results {
		if r.verdict != killed {
			fmt.Fprintf(stdout, "%s: %v\n", r.verdict, r.mark)
		}
		if r.verdict == broken || r.verdict == hung {
			fmt.Fprintf(stdout, "%s\n", r.output)
		}
	}
	counts := map[verdict]int{}
	for _, r := range results {
		counts[r.verdict]++
	}
	fmt.Fprintf(stdout, "%d checks: %d killed, %d survived, %d broken, %d hung\n",
		len(marks), counts[killed], counts[survived], counts[broken], counts[hung])
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "mutants: %v\n", err)
		return exitUndone
	case counts[killed] != len(marks):
		return exitSurvived
	}
	return exitKilled
}
