package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/signer/output"
)

func (c *cli) policyCommand() *cobra.Command {
	return group("policy", "Sign, verify and render trust policies",
		`  hostwarrant policy sign -i trust-policy.yaml --key root-2
  hostwarrant policy verify trust-policy.yaml --root roots.pub --cluster prod-1`,
		c.policySignCommand(), c.policyVerifyCommand(), c.policyRenderCommand())
}

func (c *cli) policySignCommand() *cobra.Command {
	var key string
	var inPlace bool
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a trust policy with a root key",
		Long: `sign adds the signature of a root key to a trust policy, or replaces an older one by the same key.

FILE is a TrustPolicy object, which is printed with its signatures, or edited with -i; or the bare document, whose
signatures are printed, or written to FILE.sig with -i. A signature by another key that no longer covers the document
is an error: remove it first.`,
		Example: `  hostwarrant policy sign -i trust-policy.yaml --key keys/root
  hostwarrant policy sign policy-document.yaml --key root_sk.pub > policy-document.yaml.sig`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policySign(args[0], key, inPlace) },
	}
	cmd.Flags().StringVar(&key, "key", "", "private root key file, or the .pub file of a key in ssh-agent (required)")
	cmd.Flags().BoolVarP(&inPlace, "in-place", "i", false, "edit FILE, or write FILE.sig for a bare document")
	required(cmd, "key")
	return cmd
}

func (c *cli) policySign(path, keyPath string, inPlace bool) (err error) {
	if inPlace && path == "-" {
		return usage("-i needs a file, not stdin")
	}
	key, closer, err := c.keys.Load(keyPath)
	if err != nil {
		return undecided(err)
	}
	defer closeKey(closer, &err)
	if err := checkKey(keyPath, key); err != nil {
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
	all, at, err := c.rootSignatures(t, key)
	if err != nil {
		return refused(path, err)
	}
	if isDetached(data) {
		return c.deliverDetached(path, all, inPlace)
	}
	f, err := manifest.Read(data)
	if err != nil {
		return undecided(fmt.Errorf("%s: %v", path, err))
	}
	i, _, err := onlyPolicy(f)
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	if f, err = f.SetItem(i, []string{"spec", "signatures"}, at, all[at]); err != nil {
		return undecided(fmt.Errorf("%s: %v", path, err))
	}
	if inPlace {
		return c.deliver([]signed{{files: []output.Change{{Path: path, Old: data, Data: f.Data}}}}, signOptions{})
	}
	return c.print(f.Data)
}

// rootSignatures gives the signatures of a policy after signing, and the place of the own one.
func (c *cli) rootSignatures(t *object.TrustPolicy, key ssh.Signer) (all []string, at int, err error) {
	document := []byte(t.Document)
	own, err := sshsig.Sign(c.rand, key, trustpolicy.Namespace, document)
	if err != nil {
		return nil, 0, err
	}
	// check: PolicyMalformed: a root must not sign a document that no reader takes
	if err := c.checkDocument(document, own, key.PublicKey()); err != nil {
		return nil, 0, err
	}
	at = len(t.Signatures)
	for i, text := range t.Signatures {
		sig, err := sshsig.Parse([]byte(text))
		if err == nil && sameKey(sig.PublicKey(), key.PublicKey()) {
			at = i
			continue
		}
		if err == nil {
			err = sig.Verify(trustpolicy.Namespace, document)
		}
		if err != nil {
			e := decision.From(err).At(fmt.Sprintf("spec.signatures[%d]", i))
			return nil, 0, e.Try("remove that signature: it is not of this document")
		}
	}
	all = append(all, t.Signatures...)
	if at == len(all) {
		return append(all, string(own)), at, nil
	}
	all[at] = string(own)
	return all, at, nil
}

// checkDocument refuses a document that can take effect nowhere, ever. Its term, and roots of another
// version, are only warned of: a policy may be signed before or after them.
func (c *cli) checkDocument(document, own []byte, key ssh.PublicKey) error {
	o, err := readOutline(string(document))
	if err != nil {
		return decision.Errorf(decision.PolicyMalformed, "%v", err)
	}
	only := &trustpolicy.Roots{Version: 1, Threshold: 1, Keys: []ssh.PublicKey{key}}
	_, err = trustpolicy.Verify(trustpolicy.Signed{Document: document, Signatures: []string{string(own)}}, only, o.anyCluster(), c.now())
	if err == nil {
		return nil
	}
	switch decision.From(err).Reason {
	case decision.PolicyExpired, decision.NotYetValid, decision.PolicyUnsigned:
		c.say("warning", "%v", err)
		return nil
	default:
		return err
	}
}

func (c *cli) deliverDetached(path string, all []string, inPlace bool) error {
	text := []byte(strings.Join(all, ""))
	if !inPlace {
		return c.print(text)
	}
	sig := path + ".sig"
	old, err := readFile(sig)
	if err != nil {
		old = nil
	}
	return c.deliver([]signed{{files: []output.Change{{Path: sig, Old: old, Data: text}}}}, signOptions{})
}

func (c *cli) policyVerifyCommand() *cobra.Command {
	var t trust
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify a trust policy with the root keys",
		Long: `verify says whether a trust policy would take effect: signed by enough root keys, for this cluster, in its term.

FILE is a TrustPolicy object, or the bare document with its signatures in FILE.sig.`,
		Example: `  hostwarrant policy verify trust-policy.yaml --root keys/root.pub
  hostwarrant policy verify policy-document.yaml --root roots.pub --cluster prod-1`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			anchor, err := t.anchor()
			if err != nil {
				return err
			}
			policy, err := c.readPolicy(args[0])
			if err != nil {
				return err
			}
			_, d := verify.TrustPolicy(anchor, nil, policy, c.now())
			if err := c.printVerdicts([]verdict{{Path: args[0], Decision: d}}, "text"); err != nil {
				return err
			}
			if !d.Allowed() {
				return &failure{code: exitRefused}
			}
			return nil
		},
	}
	t.flags(cmd)
	return cmd
}

func (c *cli) policyRenderCommand() *cobra.Command {
	return group("render", "Render host files from a trust policy",
		`  hostwarrant policy render allowed_signers trust-policy.yaml --root keys/root.pub > allowed_signers`,
		c.renderAllowedSignersCommand())
}

func (c *cli) renderAllowedSignersCommand() *cobra.Command {
	var t trust
	cmd := &cobra.Command{
		Use:   "allowed_signers FILE",
		Short: "Render the allowed_signers file of a host",
		Long: `allowed_signers prints the file /etc/kpssh/allowed_signers for a verified trust policy: one line for each signer
that is neither revoked nor past its term. The principals are <phase>@<profile>, and kpssh for a signer whose scope
is everything, which is what verifies scripts without a warrant. Signers with a narrower scope are named on stderr:
scripts without a warrant that they sign are refused on hosts.`,
		Example: `  hostwarrant policy render allowed_signers trust-policy.yaml --root keys/root.pub > allowed_signers`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			anchor, err := t.anchor()
			if err != nil {
				return err
			}
			s, err := c.snapshot(args[0], anchor)
			if err != nil {
				return err
			}
			// check: PolicyExpired: signers of a policy that no longer grants anything must not reach hosts
			if s.Policy.Expired(s.Now) {
				return refused(args[0], decision.Errorf(decision.PolicyExpired, "the policy expired at %s", stamp(s.Policy.Expires)))
			}
			return c.print(c.allowedSigners(s))
		},
	}
	t.flags(cmd)
	return cmd
}

// allowedSigners writes one line a signer (docs/spec/allowed-signers.md).
func (c *cli) allowedSigners(s verify.Snapshot) []byte {
	var b bytes.Buffer
	for _, signer := range s.Policy.Signers {
		expired := !signer.ValidBefore.IsZero() && !s.Now.Before(signer.ValidBefore)
		if expired || s.Policy.Revoked(signer.Key) {
			c.say("note", "signer %q is revoked or past its term, left out", signer.Name)
			continue
		}
		principals := principalsOf(signer)
		if principals[len(principals)-1] != "kpssh" {
			c.say("warning", "signer %q has a narrower scope than everything: hosts refuse its scripts without a warrant", signer.Name)
		}
		fmt.Fprintf(&b, "%s namespaces=\"kpssh\" %s\n", strings.Join(principals, ","), signer.Line)
	}
	return b.Bytes()
}
