package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
)

type checkOptions struct {
	host   hostOptions
	remote remote
	format string
}

func (c *cli) hostCheckCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say in which ways a host is not as its policy says",
		Long: `check compares a host with what provision would put there by the same flags, and names each deviation on a line of its
own, with the command that mends it: programs and their versions, what sshd and sudo themselves say of the account, owners,
modes and contents of files, the shim's digest, marks and the rest of what the host remembers, its clock.

It runs as root on the host itself, or with --ssh over the system's ssh, as root or as a user who may use sudo without a
password. What it sends there is a shell script that only reads. What a file says by an accepted statement is a note.

Exit status: 0 as the policy says, 1 any deviation, 2 wrong usage, 3 the host or the policy could not be asked.`,
		Example: `  hostwarrant host check --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --login-key relay.pub --from 192.0.2.5 --checksums SHA256SUMS --release-key release.pub --ssh root@192.0.2.7
  hostwarrant host check --policy trust-policy.yaml --root roots.pub --cluster prod-1 --class bm-amd64 --checksums SHA256SUMS --release-key release.pub -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.hostCheck(cmd.Context(), o) },
	}
	o.host.flags(cmd)
	cmd.Flags().StringVar(&o.remote.destination, "ssh", "", "host to check, as ssh takes it: [USER@]HOST (default: this one)")
	cmd.Flags().StringVar(&o.remote.config, "ssh-config", "", "configuration file of ssh, instead of the user's own")
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "text or json")
	return cmd
}

// checked is what check found; the JSON form has the same names.
type checked struct {
	Host     string              `json:"host"`
	Policy   int                 `json:"policyVersion"`
	Findings []hostsetup.Finding `json:"findings"`
	Notes    []string            `json:"notes"`
}

func (c *cli) hostCheck(ctx context.Context, o checkOptions) error {
	if o.format != "text" && o.format != "json" {
		return usage("-o takes text or json, not %.40q", o.format)
	}
	if err := o.remote.check(); err != nil {
		return err
	}
	s, err := o.host.setup(c)
	if err != nil {
		return err
	}
	facts, err := o.remote.facts(ctx, s.FactsScript())
	if err != nil {
		return err
	}
	findings, notes := s.Check(facts, c.now())
	found := checked{Host: o.remote.destination, Policy: s.PolicyVersion, Findings: append([]hostsetup.Finding{}, findings...), Notes: []string{}}
	if found.Host == "" {
		found.Host = "this host"
	}
	for _, n := range notes {
		found.Notes = append(found.Notes, n.Text)
	}
	if err := c.printChecked(found, o.format); err != nil {
		return err
	}
	if len(findings) > 0 {
		return &failure{code: exitRefused}
	}
	return nil
}

func (c *cli) printChecked(found checked, format string) error {
	if format == "json" {
		text, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return undecided(err)
		}
		return c.print(append(text, '\n'))
	}
	for _, text := range found.Notes {
		c.say("note", "%s", text)
	}
	if len(found.Findings) == 0 {
		return c.print(fmt.Appendf(nil, "%s: as trust policy %d says\n", found.Host, found.Policy))
	}
	var b strings.Builder
	for _, f := range found.Findings {
		b.WriteString(decision.OneLine(f.String(), maxSaid) + "\n") // a host says what it likes
	}
	return c.print([]byte(b.String()))
}
