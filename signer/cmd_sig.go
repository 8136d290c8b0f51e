package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

func (c *cli) sigCommand() *cobra.Command {
	return group("sig", "Raw SSHSIG signatures, with the options of ssh-keygen -Y",
		`  hostwarrant sig sign -f keys/signer -n kpssh < join.sh > join.sh.sig
  hostwarrant sig verify -f allowed_signers -I kpssh -n kpssh -s join.sh.sig < join.sh`,
		c.sigSignCommand(), c.sigVerifyCommand(), c.sigInspectCommand())
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
	cmd.Flags().StringVarP(&key, "key", "f", "", "private key file, the .pub file of a key in ssh-agent, or the -cert.pub file of either (required)")
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
	if err := c.usable(path, key); err != nil {
		return err
	}
	message, err := c.read("-")
	if err != nil {
		return undecided(err)
	}
	armored, err := sshsig.SignWithCertificates(c.rand, key, namespace, message)
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
		Long: `verify says whether a signature of stdin is by a key, or a certificate of an authority, that an allowed_signers file
lists for an identity, and that is not revoked.

It reads what ssh-keygen -Y verify reads, and refuses the rest: a line of allowed_signers or of a list of revocations
that cannot be read is an error of the whole file, not skipped.`,
		Example: `  hostwarrant sig verify -f allowed_signers -I kpssh -n kpssh -s join.sh.sig < join.sh
  hostwarrant sig verify -f allowed_signers -I join@tls-bootstrap -n kpssh -s join.sh.sig -r revoked.krl < join.sh`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.sigVerify(o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.signers, "signers", "f", "", "allowed_signers file (required)")
	f.StringVarP(&o.identity, "identity", "I", "", "identity that must have signed (required)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace (required)")
	f.StringVarP(&o.signature, "signature", "s", "", "signature file (required)")
	f.StringVarP(&o.revoked, "revoked", "r", "", "KRL, or public keys one a line, that must not have signed")
	f.StringArrayVarP(&o.options, "option", "O", nil, "verify-time=TIME judges at that time, YYYYMMDD[HHMM[SS]]Z")
	for _, name := range []string{"signers", "identity", "namespace", "signature"} {
		required(cmd, name)
	}
	return cmd
}

type sigVerifyOptions struct {
	signers, identity, namespace, signature, revoked string
	options                                          []string
}

func (c *cli) sigVerify(o sigVerifyOptions) error {
	if o.identity == "" { // ssh-keygen lets it match nothing
		return usage("-I is empty")
	}
	now, err := c.timeOf(o.options)
	if err != nil {
		return err
	}
	list, err := readSigners(o.signers)
	if err != nil {
		return err
	}
	revoked, err := readRevoked(o.revoked)
	if err != nil {
		return err
	}
	armored, err := readFile(o.signature)
	if err != nil {
		return undecided(err)
	}
	if len(armored) == 0 {
		return undecided(fmt.Errorf("%s: there is nothing to verify", o.signature))
	}
	message, err := c.read("-")
	if err != nil {
		return undecided(err)
	}
	sig, err := oneSignature(armored)
	if err != nil {
		return refused(o.signature, err)
	}
	if err := list.Verify(o.identity, o.namespace, sig, message, revoked, now); err != nil {
		return refused(o.signature, err)
	}
	return c.print([]byte(fmt.Sprintf("Good %q signature for %s with %s\n", o.namespace, shown(o.identity), keyWords(sig))))
}

// timeOf is now, unless an option says when.
func (c *cli) timeOf(options []string) (time.Time, error) {
	now := c.now()
	if len(options) > 1 { // there is one option
		return now, usage("-O verify-time is given twice")
	}
	for _, o := range options {
		text, found := strings.CutPrefix(o, "verify-time=")
		if !found {
			return now, usage("unknown option -O %q", o)
		}
		t, err := allowedsigners.ParseTime(text)
		if err != nil {
			return now, usage("-O verify-time: %v", err)
		}
		now = t
	}
	return now, nil
}

// oneSignature takes a raw key or a certificate: the list that follows says whether certificates count.
func oneSignature(armored []byte) (*sshsig.Signature, error) {
	all, err := sshsig.ParseAllWithCertificates(armored)
	if err != nil {
		return nil, err
	}
	// check: SignatureMalformed: readers differ in which of several signatures they take
	if len(all) != 1 {
		return nil, decision.Errorf(decision.SignatureMalformed, "holds %d signatures where one is wanted", len(all))
	}
	return all[0], nil
}

// keyWords names who signed, as ssh-keygen does (sshkey_type in sshkey.c).
func keyWords(sig *sshsig.Signature) string {
	words := keyType(sig.PublicKey().Type())
	if sig.Certificate() != nil {
		words += "-CERT"
	}
	words += " key " + sshsig.Fingerprint(sig.PublicKey())
	if c := sig.Certificate(); c != nil {
		words += fmt.Sprintf(", certified as %s, serial %d, by %s", shown(c.KeyId), c.Serial, sshsig.Fingerprint(c.SignatureKey))
	}
	return words
}

func keyType(algorithm string) string {
	family, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(algorithm, "sk-"), "ssh-"), "@openssh.com"), "-")
	if strings.HasPrefix(algorithm, "sk-") {
		family += "-SK"
	}
	return strings.ToUpper(family)
}
