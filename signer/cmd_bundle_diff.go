package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
)

func (c *cli) bundleDiffCommand() *cobra.Command {
	var o bundleOptions
	var format string
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what changes for agents from one set of fragments to another",
		Long: `diff assembles a bundle from each of two files or directories, by one trust policy, and prints what comes (+), goes (-) and
changes (~): first the members, then the entries of the profile that agents get. Each side is held to what assemble wants.

Exit status: 0 where agents get the same, 1 where they do not, or a side is refused.`,
		Example: `  hostwarrant bundle diff old/ new/ --policy trust-policy.yaml --root root.pub
  kubectl get containerprofiles -n redis -o yaml | hostwarrant bundle diff - new/ --bundle redis --policy policy.yaml --root root.pub`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage("-o takes text or json, not %q", format)
			}
			return c.bundleDiff(args[0], args[1], o, format)
		},
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}

// bundleChange is one line of a difference.
type bundleChange struct {
	// Sign is + for what comes, - for what goes, ~ for what is another.
	Sign string `json:"sign"`
	// Path is "member", "root", or a field of the profile.
	Path string `json:"path"`
	What string `json:"what"`
}

func (c *cli) bundleDiff(old, next string, o bundleOptions, format string) error {
	was, is, err := c.twoBundles(old, next, o)
	if err != nil {
		return err
	}
	changes, err := specChanges(was.Spec, is.Spec)
	if err != nil {
		return undecided(err)
	}
	all := append(memberChanges(was, is), changes...)
	if format == "json" {
		err = c.printJSON(all)
	} else {
		err = c.print(changeLines(all))
	}
	if err == nil && len(all) > 0 {
		return &failure{code: exitRefused}
	}
	return err
}

func (c *cli) twoBundles(old, next string, o bundleOptions) (was, is *bundle.Composite, err error) {
	if old == "-" && next == "-" {
		return nil, nil, usage("only one of OLD and NEW can be stdin")
	}
	snapshot, err := c.bundleSnapshot(o)
	if err != nil {
		return nil, nil, err
	}
	idWas, was, err := c.assembledBy(snapshot, []string{old}, o)
	if err != nil {
		return nil, nil, err
	}
	idIs, is, err := c.assembledBy(snapshot, []string{next}, o)
	if err != nil {
		return nil, nil, err
	}
	if idWas != idIs {
		return nil, nil, usage("%s holds the bundle %s, and %s holds %s", old, idWas, next, idIs)
	}
	return was, is, nil
}

func changeLines(all []bundleChange) []byte {
	var b bytes.Buffer
	for _, change := range all {
		fmt.Fprintf(&b, "%s %s %s\n", change.Sign, change.Path, escaped(change.What))
	}
	return b.Bytes()
}

// memberChanges says which members come and go, and of which the version or the content is another.
func memberChanges(was, is *bundle.Composite) []bundleChange {
	all := []bundleChange{}
	if was.Root != is.Root {
		all = append(all, bundleChange{"~", "root", was.Root + " is now " + is.Root})
	}
	before, after := leavesByName(was), leavesByName(is)
	for _, name := range sortedKeys(union(before, after)) {
		a, was := before[name]
		b, is := after[name]
		switch {
		case !was:
			all = append(all, bundleChange{"+", "member", fmt.Sprintf("%s version %d by %s", name, b.Version, b.Signer)})
		case !is:
			all = append(all, bundleChange{"-", "member", fmt.Sprintf("%s version %d by %s", name, a.Version, a.Signer)})
		case a != b:
			all = append(all, bundleChange{"~", "member", name + " " + leafChange(a, b)})
		}
	}
	return all
}

func leavesByName(c *bundle.Composite) map[string]bundle.Leaf {
	all := map[string]bundle.Leaf{}
	for _, leaf := range c.Leaves {
		all[bundle.MemberName(leaf.Class, leaf.Name)] = leaf
	}
	return all
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func leafChange(was, is bundle.Leaf) string {
	text := fmt.Sprintf("version %d is now %d", was.Version, is.Version)
	if was.Version == is.Version {
		text = fmt.Sprintf("has other content under the same version %d: the cluster refuses it", is.Version)
	}
	if is.Version < was.Version {
		text += ", below it: the cluster refuses it"
	}
	if was.Signer != is.Signer {
		text += fmt.Sprintf(", signed by %s and no longer by %s", is.Signer, was.Signer)
	}
	return text
}

// gone are the entries of a that are not in b, as often as they are too few there.
func gone(a, b []string) []string {
	count := map[string]int{}
	for _, entry := range b {
		count[entry]++
	}
	return slices.DeleteFunc(slices.Clone(a), func(entry string) bool {
		count[entry]--
		return count[entry] >= 0
	})
}
