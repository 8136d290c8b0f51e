package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/policydiff"
)

func (c *cli) policyDiffCommand() *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what a new trust policy lets through more or less than an old one",
		Long: `diff compares two trust policies, objects or bare documents, by what they mean: one line a change, those that let
more through first (WIDENS), then those that let less through (REDUCES), then versions, names and text (changes). What
is not known to let less through is WIDENS. Nothing is verified: that is policy verify.

Exit status: 0 where the documents are the same bytes, 1 where they differ, as diff has it.`,
		Example: `  hostwarrant policy diff trust-policy.yaml next-policy.yaml
  kubectl get trustpolicy cluster -o yaml | hostwarrant policy diff - next-policy.yaml`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyDiff(args[0], args[1], format) },
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "text or json")
	return cmd
}

func (c *cli) policyDiff(old, next, format string) error {
	if format != "text" && format != "json" {
		return usage("-o is text or json, not %q", format)
	}
	was, err := c.readAnyPolicy(old)
	if err != nil {
		return undecided(err)
	}
	is, err := c.readAnyPolicy(next)
	if err != nil {
		return undecided(err)
	}
	all := policydiff.Compare(was, is)
	if len(all) > 0 && is.Version <= was.Version {
		c.say("warning", "version %d is not above %d: readers that hold the old policy refuse the new one", is.Version, was.Version)
	}
	if err := c.printChanges(all, format); err != nil {
		return err
	}
	if len(all) > 0 {
		return &failure{code: exitRefused}
	}
	return nil
}

func (c *cli) printChanges(all []policydiff.Change, format string) error {
	if format == "json" {
		if all == nil {
			all = []policydiff.Change{}
		}
		return c.printJSON(all)
	}
	var b bytes.Buffer
	for _, change := range all {
		fmt.Fprintf(&b, "%-8s %s\n", change.Effect, escaped(change.What))
	}
	return c.print(b.Bytes())
}
