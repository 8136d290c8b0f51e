package bundle

import (
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
)

// Composite is what an agent is handed. It shares its parts with the fragments: values
// are never changed.
type Composite struct {
	Spec fragment.ProfileSpec
	// Root is the Merkle root over the leaves.
	Root string
	// Leaves are in the order of assembly.
	Leaves []Leaf
	// Conflicts are at most MaxConflicts; MoreConflicts says how many are not there.
	Conflicts     []Conflict
	MoreConflicts int
}

// Leaf is a member as the root names it. Name and version are inside the digest.
type Leaf struct {
	Class   string `json:"class"`
	Signer  string `json:"signer"`
	Name    string `json:"name"`
	Digest  string `json:"contentDigest"`
	Version int64  `json:"version"`
}

// LeafOf is what the root and a report say of a fragment.
func LeafOf(f *fragment.Fragment) Leaf {
	return Leaf{Class: f.Class, Signer: f.Signer, Name: f.Name, Digest: f.Digest, Version: f.Version}
}

// Assemble merges verified fragments of one bundle, in whatever order they come. A
// policy's priority names classes, or members as class/name, the weakest first. The
// error carries MemberMissing, KindMismatch or ClassUnknown.
func Assemble(members []*fragment.Fragment, priority []string) (*Composite, error) {
	// check: MemberMissing: a profile of nothing would stand for one that somebody signed
	if len(members) == 0 {
		return nil, decision.Errorf(decision.MemberMissing, "a bundle without fragments is no profile")
	}
	for _, f := range members {
		if err := fits(f, members[0].Bundle); err != nil {
			return nil, err
		}
	}
	sorted := orderOf(priority).sort(members)
	spec, err := merge(sorted)
	if err != nil {
		return nil, err
	}
	c := &Composite{Spec: spec}
	for _, f := range sorted {
		c.Leaves = append(c.Leaves, LeafOf(f.Fragment))
	}
	c.Root = rootOf(c.Leaves)
	c.Conflicts, c.MoreConflicts = conflicts(sorted)
	return c, nil
}

// fits reports whether a fragment can be a member of the bundle at all.
func fits(f *fragment.Fragment, bundle string) error {
	// check: KindMismatch: what is no profile adds nothing, and would pass for a member
	if f.Kind != fragment.KindContainerProfile || f.Profile == nil {
		return decision.Errorf(decision.KindMismatch, "a %.60q is no part of a profile", f.Kind).At(f.Name)
	}
	// check: ClassUnknown: a fragment of another bundle was signed for other pods
	if f.Bundle != bundle || f.Bundle == "" {
		return decision.Errorf(decision.ClassUnknown, "it was signed for bundle %.60q, not for %.60q", f.Bundle, bundle).At(f.Name)
	}
	// check: ClassUnknown: without a class there is no place in the order
	if f.Class == "" {
		return decision.Errorf(decision.ClassUnknown, "it was signed without a class").At(f.Name)
	}
	return nil
}
