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

// run is the program: 0 done, 1 failed, 2 usage.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	started := false
	cmd := relayCommand(stderr, &started)
	cmd.AddCommand(mintCommand(stderr, &started))
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		return fail(stderr, err, started)
	}
	return 0
}

func relayCommand(stderr io.Writer, started *bool) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           "hostwarrant-relay --anchor DIR [--namespaces NS,…]",
		Version:       version,
		Short:         "Take HostRuns to their hosts",
		Example:       "  hostwarrant-relay --anchor /etc/hostwarrant/anchor --namespaces pool",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			*started = true
			return serve(cmd.Context(), o, stderr)
		},
	}
	o.register(cmd.Flags())
	o.registerRelay(cmd.Flags())
	return cmd
}

func mintCommand(stderr io.Writer, started *bool) *cobra.Command {
	o := options{concurrent: 1}
	cmd := &cobra.Command{
		Use:     "mint --anchor DIR [--namespaces NS,…]",
		Short:   "Give bootstrap tokens to the HostRuns that join, and take them back",
		Example: "  hostwarrant-relay mint --anchor /etc/hostwarrant/anchor --namespaces pool",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(o.check(), o.checkMinter()); err != nil {
				return err
			}
			*started = true
			return serveMinter(cmd.Context(), o, stderr)
		},
	}
	o.register(cmd.Flags())
	o.registerMinter(cmd.Flags())
	return cmd
}

func fail(stderr io.Writer, err error, started bool) int {
	if _, werr := fmt.Fprintf(stderr, "hostwarrant-relay: error: %v\n", err); werr != nil {
		return 1
	}
	if started {
		return 1
	}
	return 2
}
