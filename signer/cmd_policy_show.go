package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

func (c *cli) policyShowCommand() *cobra.Command {
	var t trust
	format := "text"
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a trust policy says",
		Long: `show prints a trust policy for people: term, signers and their scopes, thresholds, hosts and floors.
With --root it is verified first, and shown only if it verifies; an expired one is shown as such. Without --root it is shown as NOT VERIFIED.`,
		Example: `  hostwarrant policy show trust-policy.yaml --root keys/root.pub
  hostwarrant policy show trust-policy.yaml -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyShow(args[0], t, format) },
	}
	t.register(cmd, "; without it nothing is verified")
	cmd.Flags().StringVarP(&format, "output", "o", format, "text or json")
	return cmd
}

func (c *cli) policyShow(path string, t trust, format string) error {
	if format != "text" && format != "json" {
		return usage("-o is text or json, not %q", format)
	}
	p, err := c.policyToShow(path, t)
	if err != nil {
		return err
	}
	c.sayExpiry(p)
	c.sayTraps(p)
	v := viewOf(p, c.now())
	if format == "json" {
		return c.printJSON(v)
	}
	return c.print(v.text())
}

func (c *cli) policyToShow(path string, t trust) (*trustpolicy.Policy, error) {
	if t.roots == "" {
		return c.readAnyPolicy(path)
	}
	anchor, err := t.anchor()
	if err != nil {
		return nil, err
	}
	policy, err := c.readPolicy(path)
	if err != nil {
		return nil, err
	}
	s, err := c.snapshotOf(path, policy, anchor)
	if err != nil {
		return nil, asRefusal(err)
	}
	return s.Policy, nil
}

// asRefusal is for commands that are about the policy itself: one that does not verify is refused, not
// a means that is lacking.
func asRefusal(err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	if _, judged := errors.AsType[*decision.Error](f.err); !judged {
		return err
	}
	return &failure{code: exitRefused, err: f.err, hint: f.hint}
}
