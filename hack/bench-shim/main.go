package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	shim    string
	runs    int
	plain   bool
	profile bool
	shells  []string
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench-shim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var o options
	flags.StringVar(&o.shim, "shim", "shim/kpssh-shim", "the shim's `file`")
	flags.IntVar(&o.runs, "runs", 20, "median of `N` runs, at least 20")
	flags.BoolVar(&o.plain, "plain", false, "scripts without a warrant, on a host that lets them run")
	flags.BoolVar(&o.profile, "profile", false, "print each program that one run starts, and when, and measure nothing")
	shells := flags.String("shells", "dash,bash", "what is /bin/sh, one after the other")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	o.shells = strings.Split(*shells, ",")
	if flags.NArg() > 0 || o.runs < 20 {
		fmt.Fprintln(stderr, "bench-shim: usage: bench-shim [-shim FILE] [-runs N] [-plain] [-profile] [-shells LIST], with N from 20 on")
		return 2
	}
	if !shimhost.Inside() {
		return again(args, stdout, stderr)
	}
	if err := bench(o, stdout); err != nil {
		fmt.Fprintf(stderr, "bench-shim: %v\n", err)
		return 1
	}
	return 0
}

// again runs this program in namespaces of its own.
func again(args []string, stdout, stderr io.Writer) int {
	cmd := shimhost.Again(args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "bench-shim: %v\n", err)
	return 1
}
