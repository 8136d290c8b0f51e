package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hostwarrant/hostwarrant/internal/bundle"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// bundleOptions say by which policy bundles are judged, and which.
type bundleOptions struct {
	trust
	policy, bundle, namespace string
}

func (o *bundleOptions) register(cmd *cobra.Command) {
	o.trust.flags(cmd)
	cmd.Flags().StringVar(&o.policy, "policy", "", policyFiles+" (required)")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "the bundle (default: the only one that is there)")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "namespace of objects that name none, as in kubectl")
	required(cmd, "policy")
}

// bundleID names a bundle: one of that name in each namespace.
type bundleID struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (id bundleID) String() string { return shown(id.Namespace) + "/" + shown(id.Name) }

// bundleSet is what files hold of fragments, judged by a policy.
type bundleSet struct {
	snapshot  verify.Snapshot
	namespace string

	candidates map[bundleID][]bundle.Candidate
	diverging  map[bundleID][]string // what a reader of the stored objects would take for signed
	rules      []*fragment.Fragment
	rulesOut   []bundle.Refusal
	loose      []string // objects of no bundle

	places map[string]string // of each object, by kind, namespace and name
}

// bundleSnapshot is the policy that bundles are judged by.
func (c *cli) bundleSnapshot(o bundleOptions) (verify.Snapshot, error) {
	anchor, err := o.anchor()
	if err != nil {
		return verify.Snapshot{}, err
	}
	return c.snapshot(o.policy, anchor)
}

// readBundles reads and judges the fragments of files and directories.
func (c *cli) readBundles(snapshot verify.Snapshot, paths []string, o bundleOptions) (*bundleSet, error) {
	inputs, err := c.gather(paths)
	if err != nil {
		return nil, err
	}
	s := &bundleSet{snapshot: snapshot, namespace: o.namespace, candidates: map[bundleID][]bundle.Candidate{}, diverging: map[bundleID][]string{}, places: map[string]string{}}
	shown := c.progress("verified", len(inputs))
	var held holding
	for i, in := range inputs {
		found, err := s.input(in)
		if err != nil {
			return nil, inContext(in.path, err)
		}
		held.take(in, found)
		shown.step(i + 1)
	}
	shown.end()
	return s, held.missing(paths, "assemble", "give files or directories that hold ContainerProfile or Rules objects")
}

// input takes the fragments of one file, and tells how many.
func (s *bundleSet) input(in input) (int, error) {
	if in.dir != nil {
		return 0, nil
	}
	f, err := manifest.Read(in.data)
	if err != nil {
		return 0, malformedAt(err)
	}
	objects, err := f.Objects()
	if err != nil {
		return 0, malformedAt(err)
	}
	found := 0
	for _, o := range objects {
		if isFragment(o) && (o.Kind == fragment.KindContainerProfile || o.Kind == fragment.KindRules) {
			found++
			if err := s.once(o, place(in.path, o.Where)); err != nil {
				return 0, err
			}
			s.take(o)
		}
	}
	return found, nil
}

// once refuses two objects of one name: only one of them can be stored.
func (s *bundleSet) once(o manifest.Object, at string) error {
	name := strings.Join([]string{o.Kind, o.Node.Path("metadata", "namespace").Str(), o.Name}, "\x00")
	before, there := s.places[name]
	if there {
		return undecided(fmt.Errorf("%s and %s both hold %s, and only one can be stored", before, at, objectName(o)))
	}
	s.places[name] = at
	return nil
}

func (s *bundleSet) take(o manifest.Object) {
	carrier, f, refusal := s.judge(o)
	if o.Kind == fragment.KindRules {
		if refusal != nil {
			s.rulesOut = append(s.rulesOut, bundle.Refusal{Name: o.Name, Error: refusal})
			return
		}
		s.rules = append(s.rules, f)
		return
	}
	id := s.idOf(o, carrier, f)
	if id.Name == "" {
		s.loose = append(s.loose, objectName(o))
		return
	}
	s.candidates[id] = append(s.candidates[id], bundle.Candidate{Namespace: id.Namespace, Name: o.Name, Fragment: f, Refusal: refusal})
	if refusal == nil && len(f.Diverges) > 0 {
		s.diverging[id] = append(s.diverging[id], fmt.Sprintf("%s: the stored spec is not the signed one in: %v", bundle.MemberName(f.Class, f.Name), f.Diverges))
	}
}

// judge says what was signed of an object, and why it may not count.
func (s *bundleSet) judge(o manifest.Object) (*fragment.Object, *fragment.Fragment, *decision.Error) {
	carrier, err := parseFragment(o)
	if err != nil {
		return nil, nil, decision.From(err)
	}
	if carrier.Namespace == "" {
		carrier.Namespace = s.namespace
	}
	f, d := verify.Fragment(s.snapshot, carrier)
	if !d.Allowed() {
		return carrier, f, decision.From(asError(d))
	}
	return carrier, f, nil
}

// idOf is the bundle that an object was signed for or, where the signature does not hold, says it is of.
func (s *bundleSet) idOf(o manifest.Object, carrier *fragment.Object, f *fragment.Fragment) bundleID {
	id := bundleID{Namespace: cmp.Or(o.Node.Path("metadata", "namespace").Str(), s.namespace), Name: o.Node.Path("metadata", "labels", fragment.LabelBundle).Str()}
	if carrier != nil {
		id.Namespace = carrier.Namespace
	}
	if f != nil {
		id.Name = f.Bundle
	}
	return id
}

// ids are the bundles that are there, in order.
func (s *bundleSet) ids() []bundleID {
	return slices.SortedFunc(maps.Keys(s.candidates), func(a, b bundleID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// chosen are those of --bundle; all where it is not given.
func (s *bundleSet) chosen(name string) []bundleID {
	return slices.DeleteFunc(s.ids(), func(id bundleID) bool { return name != "" && id.Name != name })
}

// askBundles tells what to do where a bundle has no fragments.
const askBundles = "hostwarrant inspect PATH shows of which bundle each fragment is"

// one is the bundle of --bundle, or the only one.
func (s *bundleSet) one(name string) (bundleID, error) {
	all := s.chosen(name)
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0 && name != "":
		return bundleID{}, stuck(askBundles, "there is no fragment of the bundle %.80q", name)
	case len(all) == 0:
		return bundleID{}, stuck(askBundles, "there is no fragment of any bundle: none has the label %s", fragment.LabelBundle)
	default:
		return bundleID{}, usage("there are fragments of %s and %s: say which with --bundle, and give the files of one namespace", all[0], all[1])
	}
}

// compose decides about one bundle as the cluster would that never saw it before.
func (s *bundleSet) compose(id bundleID) bundle.Outcome {
	return bundle.Compose(bundle.Set{Namespace: id.Namespace, Name: id.Name, Policy: s.snapshot.Policy.Bundles[id.Name], Candidates: s.candidates[id]})
}
