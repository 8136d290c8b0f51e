package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

type policySignOptions struct {
	key, roots       string
	inPlace, replace bool
}

func (c *cli) policySignCommand() *cobra.Command {
	var o policySignOptions
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a trust policy with a root key",
		Long: `sign adds the signature of a root key to a trust policy, or replaces an older one by the same key.

FILE is a TrustPolicy object, which is printed with its signatures, or edited with -i; or the bare document, whose
signatures are printed, or written to FILE.sig with -i. Where several roots sign, each does so on its own machine, in
any order: pass the object on, or the document with its FILE.sig. Signatures that roots made of the same document at
the same time are joined with cat. With --root, a key that is none of the roots is refused before it signs.

A signature by another key that does not cover the document, because it was edited since, is an error. --replace drops
such signatures: the first root to sign a change gives it, then the others sign as ever.`,
		Example: `  hostwarrant policy sign -i trust-policy.yaml --key keys/root
  hostwarrant policy sign -i policy-document.yaml --key root-2 --root roots.pub
  hostwarrant policy sign -i trust-policy.yaml --key root-1 --replace`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policySign(args[0], o) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "private root key file, or the .pub file of a key in ssh-agent (required)")
	cmd.Flags().StringVar(&o.roots, "root", "", "file of the root public keys, or a roots statement: refuse a --key that is none of them")
	cmd.Flags().BoolVarP(&o.inPlace, "in-place", "i", false, "edit FILE, or write FILE.sig for a bare document")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "drop the signatures of other keys that do not cover the document")
	required(cmd, "key")
	return cmd
}

func (c *cli) policySign(path string, o policySignOptions) (err error) {
	if o.inPlace && path == "-" {
		return usage("-i needs a file, not stdin")
	}
	key, closeAll, err := c.loadRoot(o.key)
	defer closeAll(&err)
	if err != nil {
		return err
	}
	data, err := c.read(path)
	if err != nil {
		return undecided(err)
	}
	t, err := c.readPolicyBytes(path, data)
	if err != nil {
		return err
	}
	roots, err := signingRoots(t, o.roots)
	if err != nil {
		return err
	}
	signatures, err := c.rootSignatures(t, key, roots, o.replace)
	if err != nil {
		return refused(path, err)
	}
	if roots == nil {
		c.sayUnchecked(key.PublicKey(), "give --root FILE to have it checked before it signs")
	}
	if isDetached(data) {
		return c.deliverDetached(path, signatures.all, o.inPlace)
	}
	f, err := setSignatures(data, signatures)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	if o.inPlace {
		return c.deliver([]signed{{files: []output.Change{{Path: path, Old: data, Data: f.Data}}}}, signOptions{})
	}
	return c.print(f.Data)
}

// setSignatures writes what signing changed into the TrustPolicy of a file.
func setSignatures(data []byte, s *cosigned) (*manifest.File, error) {
	f, err := manifest.Read(data)
	if err != nil {
		return nil, err
	}
	i, _, err := onlyPolicy(f)
	if err != nil {
		return nil, err
	}
	list, dropped := []string{"spec", "signatures"}, s.dropped
	if s.had > 0 && len(dropped) == s.had {
		dropped = dropped[1:] // the new one takes the place of the first
	}
	for _, at := range slices.Backward(dropped) {
		if f, err = f.DropItem(i, list, at); err != nil {
			return nil, err
		}
	}
	return f.SetItem(i, list, s.at, s.all[s.at])
}

// signingRoots are the roots that must sign: those of --root, or what the object's chain leads to from
// there. Without --root they are nil.
func signingRoots(t *object.TrustPolicy, path string) (*trustpolicy.Roots, error) {
	if path == "" {
		return nil, nil
	}
	anchor, err := (&trust{roots: path}).anchor()
	if err != nil {
		return nil, err
	}
	roots, err := anchor.Roots.Follow(t.Signed().Chain)
	if err != nil {
		return nil, refused(path, err)
	}
	return roots, nil
}

// rootSignatures gives the signatures of a policy after signing.
func (c *cli) rootSignatures(t *object.TrustPolicy, key ssh.Signer, roots *trustpolicy.Roots, replace bool) (*cosigned, error) {
	// check: SignerUnknown: a signature by a key that is no root counts for nothing, and looks like one that does
	if roots != nil && !quorum.Holds(roots.Keys, key.PublicKey()) {
		return nil, decision.Errorf(decision.SignerUnknown, "%s is none of the %d keys of root version %d", sshsig.Fingerprint(key.PublicKey()), len(roots.Keys), roots.Version).
			Try("sign with a root key, or give the roots that will sign to --root")
	}
	document := []byte(t.Document)
	// check: PolicyMalformed: a root must not sign a document that no reader takes
	if err := c.checkDocument(t, roots); err != nil {
		return nil, err
	}
	return c.addSignature(trustpolicy.Namespace, document, t.Signatures, key, replace)
}

// sayUnchecked says which key signed where nobody gave the roots: one that is none counts for nothing.
func (c *cli) sayUnchecked(key ssh.PublicKey, how string) {
	c.say("note", "%s signed, and whether it is a root key was not checked: %s", sshsig.Fingerprint(key), how)
}

// checkDocument refuses a document that can take effect nowhere, ever. Its term, and roots of another
// version, are only warned of: a policy may be signed before or after them.
func (c *cli) checkDocument(t *object.TrustPolicy, roots *trustpolicy.Roots) error {
	p, err := trustpolicy.ReadUnverified([]byte(t.Document))
	if err != nil {
		return err
	}
	now := c.now()
	if p.Expired(now) {
		c.say("warning", "%s: the policy expired at %s", decision.PolicyExpired, stamp(p.Expires))
	}
	if p.Issued.After(now) {
		c.say("warning", "%s: the policy is issued at %s, which is in the future", decision.NotYetValid, stamp(p.Issued))
	}
	want := 1 + len(t.RootChain)
	if roots != nil {
		want = roots.Version
	}
	if p.RootVersion != want && (roots != nil || len(t.RootChain) == 0) {
		c.say("warning", "rootVersion is %d: it takes effect only where the roots have that version, not %d", p.RootVersion, want)
	}
	c.sayTraps(p)
	return nil
}

// writesTo tells whether stdout is that file.
func (c *cli) writesTo(path string) bool {
	out, ok := c.out.(*os.File)
	if !ok {
		return false
	}
	is, err := out.Stat()
	if err != nil {
		return false
	}
	at, err := os.Stat(path)
	return err == nil && os.SameFile(is, at)
}

func (c *cli) deliverDetached(path string, all []string, inPlace bool) error {
	text := []byte(strings.Join(all, ""))
	if !inPlace && c.writesTo(path+".sig") {
		return usage("the shell empties %s.sig before its signatures are read: write it with -i", path)
	}
	if !inPlace {
		return c.print(text)
	}
	old, _, err := readSignatures(path)
	if err != nil {
		return err
	}
	return c.deliver([]signed{{files: []output.Change{{Path: path + ".sig", Old: old, Data: text}}}}, signOptions{})
}
