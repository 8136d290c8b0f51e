package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

func (c *cli) bundleCommand() *cobra.Command {
	return group("bundle", "Assemble, explain and compare bundles of signed fragments",
		`  hostwarrant bundle explain fragments/ --policy trust-policy.yaml --root root.pub
  hostwarrant bundle assemble fragments/ --bundle redis --policy trust-policy.yaml --root root.pub
  hostwarrant bundle diff old/ new/ --policy trust-policy.yaml --root root.pub`,
		c.bundleAssembleCommand(), c.bundleExplainCommand(), c.bundleDiffCommand(), c.bundleProveCommand(), c.bundleCheckCommand())
}

func (c *cli) bundleAssembleCommand() *cobra.Command {
	var o bundleOptions
	var out string
	var force bool
	cmd := &cobra.Command{
		Use:   "assemble PATH...",
		Short: "Print the profile that the fragments of a bundle make together",
		Long: `assemble verifies the fragments of a bundle, judges them by a trust policy, and prints the ContainerProfile that the
cluster would hand to agents: the same spec, Merkle root and manifest. It is not for kubectl apply: the name is the
controller's alone.

PATH is a file of one or more objects (lists too), "-" for stdin, or a directory of such files at any depth. What has no
signature is left out with a note, as in the cluster. Any other fragment of the bundle that is refused refuses the whole:
offline nobody knows whether it was a member before. What members contradict each other in is named on stderr.

Exit status: 0 assembled, 1 refused, 2 wrong usage, 3 nothing to assemble, or it could not be decided.`,
		Example: `  hostwarrant bundle assemble fragments/ --policy trust-policy.yaml --root root.pub
  kubectl get containerprofiles -n redis -o yaml | hostwarrant bundle assemble - --bundle redis --policy policy.yaml --root root.pub -o redis.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error { return c.bundleAssemble(paths, o, out, force) },
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to a new file instead of stdout")
	cmd.Flags().BoolVar(&force, "force", false, "let -o replace a file")
	return cmd
}

func (c *cli) bundleAssemble(paths []string, o bundleOptions, out string, force bool) error {
	if err := outputFile(out); err != nil {
		return err
	}
	if force && out == "" {
		return usage("--force goes with -o")
	}
	id, composite, err := c.assembled(paths, o)
	if err != nil {
		return err
	}
	text, err := compositeText(id, composite)
	if err != nil {
		return undecided(err)
	}
	if out != "" {
		return writeOut(out, text, force)
	}
	return c.print(text)
}

// assembled gives the composite of the one bundle that is meant.
func (c *cli) assembled(paths []string, o bundleOptions) (bundleID, *bundle.Composite, error) {
	snapshot, err := c.bundleSnapshot(o)
	if err != nil {
		return bundleID{}, nil, err
	}
	return c.assembledBy(snapshot, paths, o)
}

func (c *cli) assembledBy(snapshot verify.Snapshot, paths []string, o bundleOptions) (bundleID, *bundle.Composite, error) {
	s, err := c.readBundles(snapshot, paths, o)
	if err != nil {
		return bundleID{}, nil, err
	}
	id, err := s.one(o.bundle)
	if err != nil {
		return bundleID{}, nil, err
	}
	composite, err := c.wholeBundle(id, s.compose(id))
	if err == nil {
		c.tellBundle(id, s, composite)
	}
	return id, composite, err
}

// wholeBundle gives the composite, if nothing that was signed for the bundle is missing in it.
func (c *cli) wholeBundle(id bundleID, o bundle.Outcome) (*bundle.Composite, error) {
	for _, r := range o.Refusals { // the gravest first
		// check: Tampered,SignerUnknown,PathRefused: a part that went bad would just be missing in the profile
		if r.Error.Reason != decision.Unsigned {
			return nil, refused(id.String()+": "+shown(r.Name), r.Error)
		}
	}
	if n := len(o.Refusals) + o.MoreRefusals; n > 0 {
		c.say("note", "%s: %s without a signature left out, %s first", id, plural(n, "object"), shown(o.Refusals[0].Name))
	}
	if o.Refusal != nil {
		return nil, refused(id.String(), o.Refusal)
	}
	if o.Composite == nil {
		return nil, refused(id.String(), decision.Errorf(decision.MemberMissing, "the trust policy took out every member"))
	}
	return o.Composite, nil
}

func (c *cli) tellBundle(id bundleID, s *bundleSet, composite *bundle.Composite) {
	for _, conflict := range composite.Conflicts {
		c.say("warning", "%s: %s", id, conflictText(conflict))
	}
	for _, text := range s.diverging[id] {
		c.say("warning", "%s: %s", id, text)
	}
}

func conflictText(c bundle.Conflict) string {
	what, by := c.Path, "by the order of hashes: let bundles.*.priority of the trust policy decide"
	if c.Key != "" {
		what += " " + shown(c.Key)
	}
	if c.ByPolicy {
		by = "by the policy's priority"
	}
	more := ""
	if c.More > 0 {
		more = fmt.Sprintf(" and %d more", c.More)
	}
	return fmt.Sprintf("%s: %s%s differ; %s counts, %s", what, strings.Join(c.Members, ", "), more, c.Winner, by)
}

// manifestAnnotation of a composite names its members.
const manifestAnnotation = object.GroupHostwarrant + "/manifest"

// compositeText writes the object that agents are handed.
func compositeText(id bundleID, c *bundle.Composite) ([]byte, error) {
	manifest, err := c.Manifest()
	if err != nil {
		return nil, err
	}
	type metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	}
	text, err := json.Marshal(struct {
		APIVersion string               `json:"apiVersion"`
		Kind       string               `json:"kind"`
		Metadata   metadata             `json:"metadata"`
		Spec       fragment.ProfileSpec `json:"spec"`
	}{
		fragment.APIVersionOf(fragment.KindContainerProfile), fragment.KindContainerProfile,
		metadata{id.Name, id.Namespace, map[string]string{
			manifestAnnotation: bundle.Annotation(manifest), verify.RootAnnotation: c.Root, object.ManagedByAnnotation: "User",
		}},
		c.Spec,
	})
	if err != nil {
		return nil, err
	}
	return yamlOf(text)
}
