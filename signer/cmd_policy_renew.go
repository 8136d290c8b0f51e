package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

type renewOptions struct {
	key, roots, expires, warnUntil, out string
	inPlace, force                      bool
}

func (c *cli) policyRenewCommand() *cobra.Command {
	var o renewOptions
	cmd := &cobra.Command{
		Use:   "renew FILE",
		Short: "Give a trust policy its next version and a later end, and sign it",
		Long: `renew writes the next version, the present moment as issued and a later expires into a trust policy, and signs it
with one root key. Nothing else of the document changes: comments, order and style stay. The signatures of the other
roots were of the old bytes and are dropped; which of them still have to sign is said.

FILE is a TrustPolicy object, which is printed, edited with -i or written to a new file with -o; or the bare document
with its signatures in FILE.sig, which needs -i or -o. Only a policy that its roots signed as it stands is renewed: one
that was edited is signed with "policy sign --replace", so that nobody takes a change for a renewal. With --root the old
signatures are verified in full. A policy in mode warn needs a new end of the trial, with --warn-until.`,
		Example: `  hostwarrant policy renew -i trust-policy.yaml --key keys/root
  hostwarrant policy renew trust-policy.yaml --key root-1 --root roots.pub --expires 180d -o next.yaml
  hostwarrant policy sign -i next.yaml --key root-2`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyRenew(args[0], o) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "private root key file, or the .pub file of a key in ssh-agent (required)")
	cmd.Flags().StringVar(&o.roots, "root", "", "file of the root public keys, or a roots statement: verify the old signatures, and refuse a --key that is none of them")
	cmd.Flags().StringVar(&o.expires, "expires", "", "the new end: days from now, as 180d, or a date, as 2027-05-29 or 2027-05-29T00:00:00Z (default: as long a term as before)")
	cmd.Flags().StringVar(&o.warnUntil, "warn-until", "", "the new end of mode warn, in days or as a date (at most 30 days)")
	cmd.Flags().BoolVarP(&o.inPlace, "in-place", "i", false, "edit FILE, and FILE.sig of a bare document")
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "write to this new file, and to its .sig for a bare document")
	cmd.Flags().BoolVar(&o.force, "force", false, "let -o replace a file that is there")
	required(cmd, "key")
	return cmd
}

func (o renewOptions) check(path string) error {
	if o.inPlace && (path == "-" || o.out != "") {
		return usage("-i needs a file, and no -o")
	}
	if o.force && o.out == "" {
		return usage("--force goes with -o")
	}
	return outputFile(o.out)
}

func (c *cli) policyRenew(path string, o renewOptions) (err error) {
	if err := o.check(path); err != nil {
		return err
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
	if isDetached(data) && !o.inPlace && o.out == "" {
		return usage("a bare document is renewed with -i or -o FILE: its signature stands in a second file")
	}
	roots, err := signingRoots(t, o.roots)
	if err != nil {
		return err
	}
	next, signatures, err := c.renewed(t, key, roots, o)
	if err != nil {
		return refusedOrUsage(path, err)
	}
	if err := c.deliverRenewed(path, data, next, signatures, o); err != nil {
		return err
	}
	c.sayRemaining(t, key.PublicKey(), roots)
	return nil
}

// refusedOrUsage keeps a mistake in a flag one.
func refusedOrUsage(path string, err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	return refused(path, err)
}

// renewed gives the next document and its signatures.
func (c *cli) renewed(t *object.TrustPolicy, key ssh.Signer, roots *trustpolicy.Roots, o renewOptions) (string, *cosigned, error) {
	p, err := stands(t, roots, o.roots)
	if err != nil {
		return "", nil, err
	}
	edits, err := c.renewal(p, o)
	if err != nil {
		return "", nil, err
	}
	document, err := editDocument(t.Document, edits)
	if err != nil {
		return "", nil, err
	}
	next := *t
	next.Document = document
	signatures, err := c.rootSignatures(&next, key, roots, true)
	return document, signatures, err
}

// stands wants the policy to be what its signatures cover: by the roots where they are given, else by
// whoever signed.
func stands(t *object.TrustPolicy, roots *trustpolicy.Roots, path string) (*trustpolicy.Policy, error) {
	if roots != nil {
		anchor, err := (&trust{roots: path}).anchor()
		if err != nil {
			return nil, err
		}
		return trustpolicy.Authenticate(t.Signed(), anchor.Roots)
	}
	// check: PolicyUnsigned: what nobody signed is a draft, and is not renewed but signed
	if len(t.Signatures) == 0 {
		return nil, decision.Errorf(decision.PolicyUnsigned, "nobody signed this policy").Try("hostwarrant policy sign -i FILE --key ROOT")
	}
	for i, armored := range t.Signatures {
		at := fmt.Sprintf("signatures[%d]", i)
		signature, err := sshsig.Parse([]byte(armored))
		if err != nil {
			return nil, decision.From(err).At(at)
		}
		// check: SignatureInvalid: a change that nobody signed must not pass for a renewal
		if err := signature.Verify(trustpolicy.Namespace, []byte(t.Document)); err != nil {
			return nil, decision.From(err).At(at).Try("the document was edited since: hostwarrant policy sign -i FILE --key ROOT --replace")
		}
	}
	return trustpolicy.ReadUnverified([]byte(t.Document))
}

// renewal says what changes.
func (c *cli) renewal(p *trustpolicy.Policy, o renewOptions) ([]scalarEdit, error) {
	issued := c.now().UTC().Truncate(time.Second)
	expires, err := endOf("--expires", o.expires, issued, issued.Add(p.Expires.Sub(p.Issued)))
	if err != nil {
		return nil, err
	}
	edits := []scalarEdit{{"version", strconv.Itoa(p.Version + 1)}, {"issued", stamp(issued)}, {"expires", stamp(expires)}}
	warns := !p.WarnUntil().IsZero()
	if warns != (o.warnUntil != "") {
		return nil, usage("--warn-until goes with a policy in mode warn, and such a policy needs it: a trial is prolonged on purpose or not at all")
	}
	if !warns {
		return edits, nil
	}
	until, err := endOf("--warn-until", o.warnUntil, issued, issued)
	if err != nil {
		return nil, err
	}
	return append(edits, scalarEdit{"warnUntil", stamp(until)}), nil
}

// endOf reads a term in days or a date ahead.
func endOf(flag, text string, now, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	if term, err := parseTerm(text); err == nil {
		return now.Add(term), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z", "2006-01-02"} {
		if end, err := time.Parse(layout, text); err == nil && end.Format(layout) == text && end.After(now) {
			return end, nil
		}
	}
	return time.Time{}, usage("%s takes days, as 180d, or a date ahead, as 2027-05-29 or 2027-05-29T00:00:00Z, not %q", flag, text)
}

// deliverRenewed writes or prints the document and its signatures as they were found.
func (c *cli) deliverRenewed(path string, data []byte, document string, s *cosigned, o renewOptions) error {
	if isDetached(data) {
		return c.deliverRenewedDocument(path, data, document, s, o)
	}
	text, err := setDocument(data, document, s)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	switch {
	case o.inPlace:
		return c.deliver([]signed{{files: []output.Change{{Path: path, Old: data, Data: text}}}}, signOptions{})
	case o.out != "":
		return writeOut(o.out, text, o.force)
	default:
		return c.print(text)
	}
}

func (c *cli) deliverRenewedDocument(path string, data []byte, document string, s *cosigned, o renewOptions) error {
	signatures := []byte(strings.Join(s.all, ""))
	if o.inPlace {
		old, _, err := readSignatures(path)
		if err != nil {
			return err
		}
		return c.deliver([]signed{{files: []output.Change{
			{Path: path, Old: data, Data: []byte(document)}, {Path: path + ".sig", Old: old, Data: signatures},
		}}}, signOptions{})
	}
	text, err := newFile(o.out, []byte(document), o.force)
	if err != nil {
		return err
	}
	sig, err := newFile(o.out+".sig", signatures, o.force)
	if err != nil {
		return err
	}
	if err := output.All([]output.Change{text, sig}); err != nil {
		return writeFailed(err)
	}
	return nil
}

// setDocument writes document and signatures into the TrustPolicy of a file, and reads them again.
func setDocument(data []byte, document string, s *cosigned) ([]byte, error) {
	f, err := manifest.Read(data)
	if err != nil {
		return nil, err
	}
	i, _, err := onlyPolicy(f)
	if err != nil {
		return nil, err
	}
	if f, err = f.Set(i, []string{"spec", "document"}, document); err != nil {
		return nil, err
	}
	if f, err = setSignatures(f.Data, s); err != nil {
		return nil, err
	}
	_, o, err := onlyPolicy(f)
	if err != nil {
		return nil, err
	}
	again, err := parsePolicy("the object", o)
	if err != nil {
		return nil, err
	}
	if again.Document != document || !slices.Equal(again.Signatures, s.all) {
		return nil, errors.New("the file carries other bytes than were signed: write spec.document as a block scalar that keeps its final newline (|)")
	}
	return f.Data, nil
}

// sayRemaining says how many roots still have to sign, and which.
func (c *cli) sayRemaining(was *object.TrustPolicy, key ssh.PublicKey, roots *trustpolicy.Roots) {
	const how = "hostwarrant policy sign -i FILE --key ROOT"
	if roots == nil {
		c.sayUnchecked(key, "give --root FILE to have it checked before it signs")
		for _, armored := range was.Signatures {
			if signature, err := sshsig.Parse([]byte(armored)); err == nil && !quorum.Same(signature.PublicKey(), key) {
				c.say("note", "%s signed the version before and has not signed this one: %s", sshsig.Fingerprint(signature.PublicKey()), how)
			}
		}
		return
	}
	if roots.Threshold <= 1 {
		return
	}
	var rest []string
	for _, root := range roots.Keys {
		if !quorum.Same(root, key) {
			rest = append(rest, sshsig.Fingerprint(root))
		}
	}
	c.say("note", "1 of %d needed root keys signed; %d more of %s: %s", roots.Threshold, roots.Threshold-1, strings.Join(rest, ", "), how)
}
