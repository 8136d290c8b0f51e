package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

func (c *cli) policyRenderCommand() *cobra.Command {
	return group("render", "Render host files from a trust policy",
		`  hostwarrant policy render allowed_signers trust-policy.yaml --root keys/root.pub --class bm-amd64 > allowed_signers
  hostwarrant policy render krl trust-policy.yaml --root keys/root.pub > revoked_keys
  hostwarrant policy render floors trust-policy.yaml --root keys/root.pub > floors`,
		c.renderAllowedSignersCommand(), c.renderKRLCommand(), c.renderFloorsCommand())
}

// renderOptions say which hosts a file is for.
type renderOptions struct {
	class           string
	hosts           []string
	forUpstreamShim bool
}

func (o *renderOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.class, "class", "", "host class that the file is for; without it, signers limited to classes are left out")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "fingerprint of a key of the one host that the file is for (may be repeated); without it, signers limited to hosts are left out")
}

// check wants hosts that a policy can name: any others would only be left out of every target.
func (o *renderOptions) check() error {
	if o.class != "" {
		if _, err := warrant.ParseTarget("class " + o.class); err != nil {
			return usage("--class is a Kubernetes label value, not %.80q", o.class)
		}
	}
	for _, host := range o.hosts {
		if _, err := warrant.ParseTarget("host " + host); err != nil {
			return usage("--host is the fingerprint SHA256:… of one of the host's keys, not %.80q", host)
		}
	}
	return nil
}

func (c *cli) renderAllowedSignersCommand() *cobra.Command {
	var t trust
	var o renderOptions
	cmd := &cobra.Command{
		Use:   "allowed_signers FILE",
		Short: "Render the allowed_signers file of the hosts of one class",
		Long: `allowed_signers prints the file /etc/kpssh/allowed_signers for a verified trust policy: one line for each signer
that is neither revoked nor past its term, and whose targets hold the hosts that the file is for. The principals are
<phase>@<profile>, and kpssh for a signer whose scope is everything, which is what verifies scripts without a warrant.
Who is left out is named on stderr.

With --for-upstream-shim every signer gets kpssh, which is all that karpenter-provider-ssh's own shim asks for: scopes
then hold at admission and at the relay only.`,
		Example: `  hostwarrant policy render allowed_signers trust-policy.yaml --root keys/root.pub --class bm-amd64 > allowed_signers`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return c.render(args[0], t, func(s verify.Snapshot) ([]byte, error) {
				lines, err := c.allowedSigners(s, t.cluster, o)
				return hostsetup.Lines(lines), err
			})
		},
	}
	t.flags(cmd)
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.forUpstreamShim, "for-upstream-shim", false, "give every signer the principal kpssh, for hosts with karpenter-provider-ssh's shim")
	return cmd
}

func (c *cli) renderKRLCommand() *cobra.Command {
	var t trust
	cmd := &cobra.Command{
		Use:   "krl FILE",
		Short: "Render the revoked_keys file of hosts",
		Long: `krl prints the file /etc/kpssh/revoked_keys for a verified trust policy: a binary OpenSSH key revocation list of
the fingerprints of revoked.signers, with the policy's version as its number. It is the same for every host, and is
written where nothing is revoked too: a host needs the file.`,
		Example: `  hostwarrant policy render krl trust-policy.yaml --root keys/root.pub > revoked_keys`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if c.atTerminal() {
				return &failure{code: exitUsage, err: errors.New("revoked_keys is binary, and not for a terminal"), hint: "hostwarrant policy render krl … > revoked_keys"}
			}
			return c.render(args[0], t, func(s verify.Snapshot) ([]byte, error) {
				return krl.Render(s.Policy.RevokedSigners(), uint64(s.Policy.Version), s.Policy.Issued)
			})
		},
	}
	t.flags(cmd)
	return cmd
}

// atTerminal tells whether somebody would see stdout as it is.
func (c *cli) atTerminal() bool {
	f, ok := c.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (c *cli) renderFloorsCommand() *cobra.Command {
	var t trust
	cmd := &cobra.Command{
		Use:   "floors FILE",
		Short: "Render the floors file of hosts",
		Long: `floors prints the file /etc/kpssh/floors for a verified trust policy: a line "PROFILE SERIAL" or "PREFIX* SERIAL"
for each of its floors, below which a host takes no warrant's serial.`,
		Example: `  hostwarrant policy render floors trust-policy.yaml --root keys/root.pub > floors`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.render(args[0], t, func(s verify.Snapshot) ([]byte, error) {
				return hostsetup.Lines(hostsetup.Floors(s.Policy)), nil
			})
		},
	}
	t.flags(cmd)
	return cmd
}

// render prints what a policy that is in force makes of a host's file.
func (c *cli) render(path string, t trust, file func(verify.Snapshot) ([]byte, error)) error {
	s, err := c.policyInForce(path, t)
	if err != nil {
		return err
	}
	text, err := file(s)
	if err != nil {
		return refused(path, err)
	}
	return c.print(text)
}

func (c *cli) policyInForce(path string, t trust) (verify.Snapshot, error) {
	p, err := c.readPolicy(path)
	if err != nil {
		return verify.Snapshot{}, err
	}
	return c.inForce(path, p, t)
}

func (c *cli) inForce(path string, p *object.TrustPolicy, t trust) (verify.Snapshot, error) {
	anchor, err := t.anchor()
	if err != nil {
		return verify.Snapshot{}, err
	}
	s, err := c.snapshotOf(path, p, anchor)
	if err != nil {
		return verify.Snapshot{}, err
	}
	// check: PolicyExpired: what a policy that no longer grants anything says must not reach hosts
	if s.Policy.Expired(s.Now) {
		return verify.Snapshot{}, refused(path, decision.Errorf(decision.PolicyExpired, "the policy expired at %s", stamp(s.Policy.Expires)))
	}
	return s, nil
}

// allowedSigners are the lines of the signers that count on the hosts that o names; it tells who does not.
func (c *cli) allowedSigners(s verify.Snapshot, cluster string, o renderOptions) ([]string, error) {
	lines, notes, err := hostsetup.AllowedSigners(s.Policy, s.Now, o.place(cluster))
	c.tell(notes)
	return lines, err
}

func (o renderOptions) place(cluster string) hostsetup.Place {
	return hostsetup.Place{Class: o.class, Cluster: cluster, Hosts: o.hosts, ForUpstreamShim: o.forUpstreamShim}
}
