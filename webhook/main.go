package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2
)

// usageError is a mistake in how the program was called.
type usageError struct{ error }

// run is the program; it ends when ctx does.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "hostwarrant-webhook: error: %v\n", err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(stderr, "hostwarrant-webhook: hint: hostwarrant-webhook --help")
		return exitUsage
	}
	return exitFault
}

func rootCommand(stderr io.Writer) *cobra.Command {
	serve := serveCommand(stderr)
	root := &cobra.Command{
		Use:           "hostwarrant-webhook",
		Version:       version,
		Short:         "Refuses, at kubectl apply, what nobody vouched for",
		Example:       "  hostwarrant-webhook serve --anchor /etc/hostwarrant/anchor\n  hostwarrant-webhook control --anchor /etc/hostwarrant/anchor",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs,
		RunE:          serve.RunE, // "serve" may be left out
	}
	root.Flags().AddFlagSet(serve.Flags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(serve, controlCommand(stderr))
	return root
}

// usageArgs refuses arguments that are no flags.
func usageArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}
