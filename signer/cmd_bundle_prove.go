package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// inclusion is a proof as prove writes it.
type inclusion struct {
	Root  string        `json:"root"`
	Leaf  bundle.Leaf   `json:"leaf"`
	Proof []bundle.Step `json:"proof"`
}

func (c *cli) bundleProveCommand() *cobra.Command {
	var o bundleOptions
	var member string
	cmd := &cobra.Command{
		Use:   "prove PATH...",
		Short: "Print a proof that a fragment is part of a bundle",
		Long: `prove assembles a bundle as assemble does, and prints as JSON how one of its fragments leads to its Merkle root. Who has
the fragment, the proof and the root needs no other fragment to check it: see bundle check.`,
		Example: `  hostwarrant bundle prove fragments/ --fragment overlay/redis-ops --policy trust-policy.yaml --root root.pub > proof.json`,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, paths []string) error { return c.bundleProve(paths, member, o) },
	}
	o.register(cmd)
	cmd.Flags().StringVar(&member, "fragment", "", "the member, as CLASS/NAME (required)")
	required(cmd, "fragment")
	return cmd
}

func (c *cli) bundleProve(paths []string, member string, o bundleOptions) error {
	id, composite, err := c.assembled(paths, o)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(composite.Leaves, func(leaf bundle.Leaf) bool { return bundle.MemberName(leaf.Class, leaf.Name) == member })
	if at < 0 {
		return &failure{
			code: exitRefused, err: fmt.Errorf("%s: %.160q is no member of it", id, member),
			hint: "hostwarrant bundle explain lists the members",
		}
	}
	return c.printJSON(inclusion{composite.Root, composite.Leaves[at], composite.Proof(at)})
}

// inclusionOptions say what a fragment is held against.
type inclusionOptions struct{ root, proof, manifest string }

func (c *cli) bundleCheckCommand() *cobra.Command {
	var o inclusionOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check that a fragment is part of what agents enforce",
		Long: `check says whether the fragment in FILE is under a Merkle root: that of the composite in the cluster, say. It needs either
a proof, by bundle prove, or the manifest, which the composite carries in the annotation hostwarrant.dev/manifest. The
signature of the fragment is verified; whether its signer may is not asked: that is verify.

Exit status: 0 it is, 1 it is not, 2 wrong usage, 3 it could not be decided.`,
		Example: `  hostwarrant bundle check redis-ops.yaml --proof proof.json --merkle-root acc1c4b5dede580900766f30b5ad1b3db4f8f3530da0f9799dc600f201ced57b
  kubectl get containerprofile redis -o jsonpath='{.metadata.annotations.hostwarrant\.dev/merkle-root}'`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.bundleCheck(args[0], o) },
	}
	cmd.Flags().StringVar(&o.root, "merkle-root", "", "the root, 64 hex digits (required)")
	cmd.Flags().StringVar(&o.proof, "proof", "", "file that bundle prove printed")
	cmd.Flags().StringVar(&o.manifest, "manifest", "", "file of a composite's manifest")
	required(cmd, "merkle-root")
	return cmd
}

func (c *cli) bundleCheck(path string, o inclusionOptions) error {
	if (o.proof == "") == (o.manifest == "") {
		return usage("give either --proof or --manifest")
	}
	leaf, err := c.leafOf(path)
	if err != nil {
		return err
	}
	proof, err := o.steps(leaf)
	if err != nil {
		return err
	}
	if err := bundle.VerifyProof(o.root, leaf, proof); err != nil {
		return refused(path, err)
	}
	return c.print(fmt.Appendf(nil, "%s: %s version %d is under the root %s\n", place(path, ""), shown(bundle.MemberName(leaf.Class, leaf.Name)), leaf.Version, o.root))
}

// leafOf is the leaf of the one fragment of a file, by what was signed.
func (c *cli) leafOf(path string) (bundle.Leaf, error) {
	o, err := c.onlyFragment(path)
	if err != nil {
		return bundle.Leaf{}, err
	}
	carrier, err := parseFragment(o)
	if err != nil {
		return bundle.Leaf{}, refused(path, err)
	}
	// check: Tampered,Unsigned: anybody can write a fragment that says it is the one with this digest
	f, err := fragment.Verify(carrier)
	if err != nil {
		return bundle.Leaf{}, refused(path, err)
	}
	return bundle.Leaf{Class: f.Class, Signer: f.Signer, Name: f.Name, Digest: f.Digest, Version: f.Version}, nil
}

func (c *cli) onlyFragment(path string) (manifest.Object, error) {
	data, err := c.read(path)
	if err != nil {
		return manifest.Object{}, undecided(err)
	}
	f, err := manifest.Read(data)
	if err != nil {
		return manifest.Object{}, refused(path, malformedAt(err))
	}
	objects, err := f.Objects()
	if err != nil {
		return manifest.Object{}, refused(path, malformedAt(err))
	}
	at := fragmentNumbers(objects)
	if len(at) != 1 {
		return manifest.Object{}, undecided(fmt.Errorf("%s holds %s, and one is wanted", path, plural(len(at), "fragment")))
	}
	return objects[at[0]], nil
}

// steps gives the proof for a leaf.
func (o inclusionOptions) steps(leaf bundle.Leaf) ([]bundle.Step, error) {
	if o.proof != "" {
		return readProof(o.proof, leaf)
	}
	text, err := readFile(o.manifest)
	if err != nil {
		return nil, undecided(err)
	}
	composite, err := bundle.ParseManifest(bytes.TrimSpace(text))
	if err != nil {
		return nil, refused(o.manifest, err)
	}
	at := slices.Index(composite.Leaves, leaf)
	// check: MemberMissing: a fragment that the manifest does not name is no member
	if at < 0 {
		return nil, refused(o.manifest, decision.Errorf(decision.MemberMissing, "it does not name the fragment, or another version of it"))
	}
	return composite.Proof(at), nil
}

func readProof(path string, leaf bundle.Leaf) ([]bundle.Step, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, undecided(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var p inclusion
	if err := decoder.Decode(&p); err != nil {
		return nil, undecided(fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "json: ")))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, undecided(fmt.Errorf("%s: there is text behind the proof", path))
	}
	// check: Tampered: a proof for one fragment says nothing of another
	if p.Leaf != leaf {
		return nil, refused(path, decision.Errorf(decision.Tampered, "it is a proof for another fragment, or another version of it"))
	}
	return p.Proof, nil
}
