package main

import (
	"bytes"
	"cmp"
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
type inclusionOptions struct{ root, proof, composite string }

func (c *cli) bundleCheckCommand() *cobra.Command {
	var o inclusionOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check that a fragment is part of what agents enforce",
		Long: `check says whether the fragment in FILE is a part of a bundle: either of the composite in the cluster, by the manifest that
it carries, or of whatever has the Merkle root of --merkle-root, by a proof that bundle prove made. The signature of the
fragment is verified; whether its signer may is not asked: that is verify.

Exit status: 0 it is, 1 it is not, 2 wrong usage, 3 it could not be decided.`,
		Example: `  kubectl get containerprofile redis -o yaml | hostwarrant bundle check redis-ops.yaml --composite -
  hostwarrant bundle check redis-ops.yaml --proof proof.json --merkle-root acc1c4b5dede580900766f30b5ad1b3db4f8f3530da0f9799dc600f201ced57b`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return c.bundleCheck(args[0], o) },
	}
	cmd.Flags().StringVar(&o.root, "merkle-root", "", "the root, 64 hex digits (required with --proof)")
	cmd.Flags().StringVar(&o.proof, "proof", "", "file that bundle prove printed")
	cmd.Flags().StringVar(&o.composite, "composite", "", "file of the ContainerProfile that agents are handed, - for stdin")
	return cmd
}

func (c *cli) bundleCheck(path string, o inclusionOptions) error {
	switch {
	case (o.proof == "") == (o.composite == ""):
		return usage("give either --proof or --composite")
	case o.proof != "" && o.root == "":
		return usage("--proof needs --merkle-root: that of the composite in the cluster, say")
	case path == "-" && o.composite == "-":
		return usage("only one of FILE and --composite can be stdin")
	}
	leaf, err := c.leafOf(path)
	if err != nil {
		return err
	}
	root, proof, err := c.wayTo(leaf, o)
	if err != nil {
		return err
	}
	if err := bundle.VerifyProof(root, leaf, proof); err != nil {
		return refused(path, err)
	}
	return c.print(fmt.Appendf(nil, "%s: %s version %d is under the root %s\n", place(path, ""), shown(bundle.MemberName(leaf.Class, leaf.Name)), leaf.Version, root))
}

// wayTo gives the root that a leaf is to be under, and how it leads there.
func (c *cli) wayTo(leaf bundle.Leaf, o inclusionOptions) (root string, proof []bundle.Step, err error) {
	if o.proof != "" {
		proof, err = readProof(o.proof, leaf)
		return o.root, proof, err
	}
	composite, err := c.storedComposite(o.composite)
	if err != nil {
		return "", nil, err
	}
	at := slices.Index(composite.Leaves, leaf)
	// check: MemberMissing: a fragment that the manifest does not name is no member
	if at < 0 {
		return "", nil, refused(o.composite, decision.Errorf(decision.MemberMissing, "its manifest does not name the fragment, or another version of it"))
	}
	return cmp.Or(o.root, composite.Root), composite.Proof(at), nil
}

// storedComposite reads the manifest of a composite as it is stored.
func (c *cli) storedComposite(path string) (*bundle.Composite, error) {
	o, err := c.onlyFragment(path)
	if err != nil {
		return nil, err
	}
	text := o.Node.Path("metadata", "annotations", manifestAnnotation).Str()
	if text == "" {
		return nil, undecided(fmt.Errorf("%s: %s has no annotation %s: it is no composite", path, objectName(o), manifestAnnotation))
	}
	if strings.HasPrefix(text, "sha256:") {
		return nil, &failure{
			code: exitUndecided, err: fmt.Errorf("%s: the manifest is too long for the annotation, which holds its digest", path),
			hint: "hostwarrant bundle prove makes a proof from the fragments",
		}
	}
	composite, err := bundle.ParseManifest([]byte(text))
	if err != nil {
		return nil, refused(path, err)
	}
	return composite, nil
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
	f, err := fragment.Verify(carrier)
	// check: Tampered,Unsigned: anybody can write a fragment that says it is the one with this digest
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
