package main

import (
	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func (c *cli) policyCommand() *cobra.Command {
	return group("policy", "Sign, renew, verify, compare and render trust policies",
		`  hostwarrant policy sign -i trust-policy.yaml --key root-2
  hostwarrant policy verify trust-policy.yaml --root roots.pub --cluster prod-1
  hostwarrant policy diff trust-policy.yaml next-policy.yaml`,
		c.policySignCommand(), c.policyRenewCommand(), c.policyVerifyCommand(), c.policyShowCommand(), c.policyDiffCommand(), c.policyPackCommand(),
		c.policyRenderCommand(), c.policyImportCommand(), c.policyExportCommand())
}

func (c *cli) policyVerifyCommand() *cobra.Command {
	var t trust
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a trust policy with the root keys",
		Long: `verify says whether a trust policy would take effect: signed by enough root keys, for this cluster, in its term.

FILE is a TrustPolicy object, or the bare document with its signatures in FILE.sig. The roots may be older than those
that signed: the object's spec.rootChain is followed from them. What the policy names and refuses all the same, as a
class of hosts that may run nothing, and times in it that end within 30 days are warned of, as "sign", "renew" and
"show" do.`,
		Example: `  hostwarrant policy verify trust-policy.yaml --root keys/root.pub
  hostwarrant policy verify policy-document.yaml --root roots.pub --cluster prod-1`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyVerify(args[0], t) },
	}
	t.flags(cmd)
	return cmd
}

func (c *cli) policyVerify(path string, t trust) error {
	anchor, err := t.anchor()
	if err != nil {
		return err
	}
	policy, err := c.readPolicy(path)
	if err != nil {
		return err
	}
	p, d := verify.TrustPolicy(anchor, nil, policy, c.now())
	if !d.Allowed() {
		d.Hint = offlineHint(d.Reason, d.Where, d.Hint)
	}
	if err := c.printVerdicts([]verdict{{Path: path, Decision: d}}, "text"); err != nil {
		return err
	}
	if !d.Allowed() {
		return &failure{code: exitRefused}
	}
	c.sayExpiry(p)
	c.sayTraps(p)
	return nil
}

// maxTraps bounds what is said of one policy.
const maxTraps = 20

// sayTraps says what a policy names and refuses all the same, before somebody relies on it.
func (c *cli) sayTraps(p *trustpolicy.Policy) {
	traps := p.Traps(c.now())
	for _, trap := range traps[:min(len(traps), maxTraps)] {
		c.say("warning", "%s", escaped(trap))
	}
	if more := len(traps) - maxTraps; more > 0 {
		c.say("warning", "and %d more of the kind", more)
	}
}

// sayExpiry says in time that a policy ends.
func (c *cli) sayExpiry(p *trustpolicy.Policy) {
	if warning := verify.ExpiryWarning(p, c.now()); warning != "" {
		c.say("warning", "%s", warning)
	}
}

// readAnyPolicy reads a policy that nobody verified, to show or compare it.
func (c *cli) readAnyPolicy(path string) (*trustpolicy.Policy, error) {
	t, err := c.readPolicy(path)
	if err != nil {
		return nil, err
	}
	p, err := trustpolicy.ReadUnverified([]byte(t.Document))
	if err != nil {
		return nil, refused(path, err)
	}
	return p, nil
}
