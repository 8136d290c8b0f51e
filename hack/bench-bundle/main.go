package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench-bundle", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runs := flags.Int("runs", 3, "median of `N` runs")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 || *runs < 1 {
		fmt.Fprintln(stderr, "bench-bundle: usage: bench-bundle [-runs N], with N from 1 on")
		return 2
	}
	if err := bench(*runs, stdout); err != nil {
		fmt.Fprintf(stderr, "bench-bundle: %v\n", err)
		return 1
	}
	return 0
}
