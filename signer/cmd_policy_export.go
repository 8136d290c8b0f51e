package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

type exportOptions struct{ key, like string }

func (c *cli) policyExportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Make kubescape's trust-policy.signed.json of a trust policy",
		Long: `export prints the classes of a trust policy as a trust-policy.signed.json, signed by the ECDSA P-256 key of --key,
which kubescape's agents have as their root. Revoked fragment signers are left out of it; what else cannot be carried
over is named on stderr. The policy itself is not verified: that is policy verify.

With --like OLD the mode, the version and the signature of an earlier file are kept, where the classes are the same.

A FILE of one OpenSSH public key is printed as PEM.`,
		Example: `  hostwarrant policy export trust-policy.yaml --key kubescape-root > trust-policy.signed.json
  hostwarrant policy export roots > root.pub`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policyExport(args[0], o) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "private key file of kubescape's root, or the .pub file of a key in ssh-agent")
	cmd.Flags().StringVar(&o.like, "like", "", "earlier trust-policy.signed.json whose signature is kept")
	return cmd
}

func (c *cli) policyExport(path string, o exportOptions) error {
	data, err := c.read(path)
	if err != nil {
		return undecided(err)
	}
	if err := notPrivate(path, path, data); err != nil {
		return err
	}
	if roots, err := trustpolicy.ParseRoots(data); err == nil {
		return c.exportRoot(path, roots)
	}
	if (o.key == "") == (o.like == "") {
		return usage("give either --key, to sign, or --like, to keep an earlier signature")
	}
	t, err := c.readPolicyBytes(path, data)
	if err != nil {
		return err
	}
	p, err := trustpolicy.ReadUnverified([]byte(t.Document))
	if err != nil {
		return refused(path, err)
	}
	f, err := exportFile(p)
	if err != nil {
		return refused(path, err)
	}
	if o.like != "" {
		f, err = c.keepSignature(f, o.like)
	} else {
		err = c.signExport(path, f, o.key)
	}
	if err != nil {
		return err
	}
	text, err := f.Encode()
	if err != nil {
		return undecided(err)
	}
	for _, part := range notExported(p) {
		c.say("note", "not carried over: %s", part)
	}
	return c.print(text)
}

// exportRoot prints the one key of a roots file as PEM.
func (c *cli) exportRoot(path string, roots *trustpolicy.Roots) error {
	if len(roots.Keys) != 1 {
		return &failure{
			code: exitUndecided, err: fmt.Errorf("%s holds %d keys, and kubescape's agents have one root", path, len(roots.Keys)),
			hint: "give a file with the one key",
		}
	}
	public, err := ecdsaKey(roots.Keys[0])
	if err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return undecided(fmt.Errorf("%s: %v", path, err))
	}
	return c.print(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// exportFile gives the policy in the other format, without the signers that are revoked.
func exportFile(p *trustpolicy.Policy) (*policyfile.File, error) {
	f := &policyfile.File{Policy: policyfile.Policy{Mode: policyfile.Enforce, Classes: map[string]policyfile.Class{}, PolicyVersion: int64(p.Version)}}
	if !p.WarnUntil().IsZero() {
		f.Policy.Mode = policyfile.Alert
	}
	valid := func(signers []string) []string {
		return slices.DeleteFunc(slices.Clone(signers), func(s string) bool { return slices.Contains(p.RevokedFragmentSigners, s) })
	}
	for name, class := range p.FragmentClasses {
		f.Policy.Classes[name] = policyfile.Class{Signers: valid(class.Signers), AllowedSpecPaths: class.AllowedSpecPaths}
	}
	for name, class := range p.RuleClasses {
		if f.Policy.RuleClasses == nil {
			f.Policy.RuleClasses = map[string]policyfile.RuleClass{}
		}
		f.Policy.RuleClasses[name] = policyfile.RuleClass{Signers: valid(class.Signers), AllowedRuleIDs: class.AllowedRuleIDs}
	}
	for name, class := range p.BindingClasses {
		if f.Policy.BindingClasses == nil {
			f.Policy.BindingClasses = map[string]policyfile.BindingClass{}
		}
		f.Policy.BindingClasses[name] = policyfile.BindingClass{Signers: valid(class.Signers)}
	}
	// check: PolicyMalformed: the other format's reader refuses a policy without classes
	if len(f.Policy.Classes) == 0 {
		return nil, decision.Errorf(decision.PolicyMalformed, "the policy has no fragmentClasses, and the other format needs one")
	}
	return f, nil
}

func (c *cli) signExport(path string, f *policyfile.File, keyPath string) (err error) {
	key, closeAll, err := c.loadRoot(keyPath)
	defer closeAll(&err)
	if err != nil {
		return err
	}
	if err := c.signPolicyFile(f, key); err != nil {
		return undecided(fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

// keepSignature gives the earlier file where it says the same.
func (c *cli) keepSignature(f *policyfile.File, path string) (*policyfile.File, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, undecided(err)
	}
	old, err := policyfile.Parse(text)
	if err != nil {
		return nil, undecided(fmt.Errorf("%s: %w", path, err))
	}
	if mode := old.Policy.Mode; mode != f.Policy.Mode {
		c.say("warning", "%s keeps its mode %q (none means alert); the policy says %s", path, mode, f.Policy.Mode)
	}
	was, is := old.Policy, f.Policy
	is.Mode, is.PolicyVersion = was.Mode, was.PolicyVersion
	// check: Tampered: an old signature must not be put under other classes
	if !reflect.DeepEqual(was, is) {
		return nil, refused(path, decision.Errorf(decision.Tampered, "its classes are not those of the policy, so its signature cannot be kept").Try("sign anew with --key"))
	}
	return old, nil
}

// notExported says what a policy has that the other format cannot carry.
func notExported(p *trustpolicy.Policy) []string {
	var parts []string
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"clusters, issued and expires: the file is good for every cluster, and for ever", true},
		{"joinProfiles", len(p.Signers)+len(p.Hosts.Users) > 0},
		{"learners", len(p.Learners) > 0},
		{"bundles", len(p.Bundles) > 0},
		{"floors", len(p.Floors) > 0},
		{"resets", len(p.Resets) > 0},
		{"waivers", len(p.Waivers) > 0},
	} {
		if part.given {
			parts = append(parts, part.name)
		}
	}
	for _, name := range sortedKeys(p.FragmentClasses) {
		if len(p.FragmentClasses[name].Values) > 0 {
			parts = append(parts, "fragmentClasses."+name+".values: there its signers may set any value")
		}
	}
	for _, name := range sortedKeys(p.RuleClasses) {
		if !p.RuleClasses[name].MayDisable {
			parts = append(parts, "ruleClasses."+name+".mayDisable: there its signers may switch rules off")
		}
	}
	return parts
}
