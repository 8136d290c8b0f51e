package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

func (c *cli) sigCommand() *cobra.Command {
	return group("sig", "Raw SSHSIG signatures, with the options of ssh-keygen -Y",
		`  hostwarrant sig sign -f keys/signer -n kpssh < join.sh > join.sh.sig
  hostwarrant sig verify -f allowed_signers -I kpssh -n kpssh -s join.sh.sig < join.sh`,
		c.sigSignCommand(), c.sigVerifyCommand())
}

func (c *cli) sigSignCommand() *cobra.Command {
	var key, namespace string
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Sign a message on stdin",
		Long: `sign prints an SSHSIG signature of stdin. It signs any bytes in any namespace: scripts that must verify in the
cluster are better signed with "hostwarrant sign", which reads them as the cluster does.`,
		Example: `  hostwarrant sig sign -f keys/signer -n kpssh < join.sh > join.sh.sig`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return c.sigSign(key, namespace) },
	}
	cmd.Flags().StringVarP(&key, "key", "f", "", "private key file, or the .pub file of a key in ssh-agent (required)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace (required)")
	required(cmd, "key")
	required(cmd, "namespace")
	return cmd
}

func (c *cli) sigSign(path, namespace string) (err error) {
	key, closer, err := c.keys.Load(path)
	if err != nil {
		return undecided(err)
	}
	defer closeKey(closer, &err)
	if err := checkKey(path, key); err != nil {
		return err
	}
	message, err := c.read("-")
	if err != nil {
		return undecided(err)
	}
	armored, err := sshsig.Sign(c.rand, key, namespace, message)
	if err != nil {
		return refused("signing", err)
	}
	return c.print(armored)
}

func (c *cli) sigVerifyCommand() *cobra.Command {
	var o sigVerifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify a signature of a message on stdin",
		Long: `verify says whether a signature of stdin is by a key that an allowed_signers file lists for an identity.

Lines are: principals, then namespaces="..." if given, then the key. Principals are names or patterns with * and ?,
with commas between them. Other options and negated patterns are errors, not ignored.`,
		Example: `  hostwarrant sig verify -f allowed_signers -I kpssh -n kpssh -s join.sh.sig < join.sh`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return c.sigVerify(o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.signers, "signers", "f", "", "allowed_signers file (required)")
	f.StringVarP(&o.identity, "identity", "I", "", "identity that must have signed (required)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace (required)")
	f.StringVarP(&o.signature, "signature", "s", "", "signature file (required)")
	for _, name := range []string{"signers", "identity", "namespace", "signature"} {
		required(cmd, name)
	}
	return cmd
}

type sigVerifyOptions struct{ signers, identity, namespace, signature string }

func (c *cli) sigVerify(o sigVerifyOptions) error {
	if o.identity == "" { // ssh-keygen lets it match nothing; a pattern * would match it here
		return usage("-I is empty")
	}
	list, err := readFile(o.signers)
	if err != nil {
		return undecided(err)
	}
	entries, err := parseSigners(string(list))
	if err != nil {
		return undecided(fmt.Errorf("%s: %v", o.signers, err))
	}
	armored, err := readFile(o.signature)
	if err != nil {
		return undecided(err)
	}
	message, err := c.read("-")
	if err != nil {
		return undecided(err)
	}
	sig, err := sshsig.Parse(armored)
	if err != nil {
		return refused(o.signature, err)
	}
	if err := sig.Verify(o.namespace, message); err != nil {
		return refused(o.signature, err)
	}
	for _, e := range entries {
		if sameKey(e.key, sig.PublicKey()) && e.allows(o.identity, o.namespace) {
			return c.print([]byte(fmt.Sprintf("Good %q signature for %s with %s key %s\n", o.namespace, o.identity,
				strings.TrimPrefix(sig.PublicKey().Type(), "ssh-"), sshsig.Fingerprint(sig.PublicKey()))))
		}
	}
	return refused(o.signature, decision.Errorf(decision.SignerUnknown, "the key %s is not listed for %q in namespace %q",
		sshsig.Fingerprint(sig.PublicKey()), o.identity, o.namespace))
}
