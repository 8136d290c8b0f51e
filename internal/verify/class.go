package verify

import (
	"fmt"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// permitted says whether the signer of a fragment may say what it says: the checks of a class, in
// the order of docs/spec/trust-policy.md. The first that fails answers.
func (s Snapshot) permitted(f *fragment.Fragment) error {
	// check: SignerRevoked: a key in wrong hands still makes good signatures
	if slices.Contains(s.Policy.RevokedFragmentSigners, f.Signer) {
		return decision.Errorf(decision.SignerRevoked, "the policy revokes %s", f.Signer).Try("sign it with another key: " + signFragment)
	}
	// check: ClassUnknown: without a class nobody has said what its signer may set
	if f.Class == "" {
		return decision.Errorf(decision.ClassUnknown, "the signed content has no class").At(labelPath(fragment.LabelClass)).Try("sign it with a class: " + signFragment)
	}
	if err := placeable(f); err != nil {
		return err
	}
	switch f.Kind {
	case object.KindContainerProfile, object.KindSeccompProfile:
		return s.profileClass(f)
	case object.KindRules:
		return s.ruleClass(f)
	case object.KindRuleBinding:
		c, known := s.Policy.BindingClasses[f.Class]
		return s.signed(f, "bindingClasses", c.Signers, known)
	default:
		return decision.Errorf(decision.KindMismatch, "no rule judges the kind %.60q", f.Kind)
	}
}

// placeable wants a bundle that can be: the composite is named so.
func placeable(f *fragment.Fragment) error {
	// check: Malformed: a bundle that no object can be named after, or with a slash in it, counts in the slot of another
	if f.Bundle != "" && !trustpolicy.ValidObjectName(f.Bundle) {
		return decision.Errorf(decision.Malformed, "%.80q is not the name of a bundle", f.Bundle).At(labelPath(fragment.LabelBundle)).
			Try("sign it again with --bundle NAME, a name as objects have")
	}
	return nil
}

// signed wants a class that the policy has, and a signer of it.
func (s Snapshot) signed(f *fragment.Fragment, sort string, signers []string, known bool) error {
	// check: ClassUnknown: a class that the policy does not know has no limits
	if !known {
		return decision.Errorf(decision.ClassUnknown, "the policy's %s have no %.63q", sort, f.Class).At(labelPath(fragment.LabelClass)).
			Try("sign it for a class that the policy has, or add the class to the policy")
	}
	// check: SignerUnknown: anybody can make a key, and a certificate of it
	if !s.namesSigner(f.Signer) {
		return decision.Errorf(decision.SignerUnknown, "the policy does not name %s", f.Signer).Try("sign it with a key that the policy names, or add the key to the policy")
	}
	// check: SignerScope: who may add a line to an overlay must not write the base, nor the reverse
	if !slices.Contains(signers, f.Signer) {
		return decision.Errorf(decision.SignerScope, "%s may not sign the class %.63q of %s", f.Signer, f.Class, sort).Try("sign it with a key that the policy names for that class")
	}
	return nil
}

// namesSigner reports whether the policy names a key for any class.
func (s Snapshot) namesSigner(signer string) bool {
	for _, c := range s.Policy.FragmentClasses {
		if slices.Contains(c.Signers, signer) {
			return true
		}
	}
	for _, c := range s.Policy.RuleClasses {
		if slices.Contains(c.Signers, signer) {
			return true
		}
	}
	for _, c := range s.Policy.BindingClasses {
		if slices.Contains(c.Signers, signer) {
			return true
		}
	}
	return false
}

// profileClass judges a profile by its class.
func (s Snapshot) profileClass(f *fragment.Fragment) error {
	c, known := s.Policy.FragmentClasses[f.Class]
	if err := s.signed(f, "fragmentClasses", c.Signers, known); err != nil {
		return err
	}
	for _, path := range pathsOf(f) {
		// check: PathRefused: a part of the profile that its class must not set would be let through with the rest
		if !c.MaySet(path) {
			return decision.Errorf(decision.PathRefused, "the class %.63q may not set %s", f.Class, path).At("spec." + path).
				Try("leave it out, or sign it for another class")
		}
	}
	if f.Profile != nil {
		if err := valuesOf(c, f.Profile); err != nil {
			return err
		}
	}
	return s.buried(f)
}

// pathsOf are the parts of a profile that a fragment sets. A SeccompProfile is one part.
func pathsOf(f *fragment.Fragment) []string {
	if f.Profile == nil {
		return []string{"seccompProfile"}
	}
	return f.Profile.Set()
}

// buried refuses a fragment that the policy took out of its bundle, and one in the composite's place.
func (s Snapshot) buried(f *fragment.Fragment) error {
	if f.Kind != object.KindContainerProfile {
		return nil
	}
	// check: CompositeForeign: a part under the bundle's own name would take the place of the whole
	if f.Bundle == f.Name {
		return decision.Errorf(decision.CompositeForeign, "a part of a bundle may not have the bundle's name").At("metadata.name").Try("sign it under another name")
	}
	for _, t := range s.Policy.Bundles[f.Bundle].Tombstones {
		// check: VersionRollback: what the roots took out of a bundle must not come back
		if t.Class == f.Class && t.Name == f.Name && f.Version <= t.Version {
			return decision.Errorf(decision.VersionRollback, "the policy took it out of the bundle %.63q up to version %d", f.Bundle, t.Version).
				At(labelPath(fragment.LabelVersion)).Try("sign a higher version, if it shall come back")
		}
	}
	return nil
}

// overlay is the class of Rules that hold for the pods of one bundle.
const overlay = "overlay"

// ruleClass judges rules by their class: one bad rule refuses the whole object.
func (s Snapshot) ruleClass(f *fragment.Fragment) error {
	c, known := s.Policy.RuleClasses[f.Class]
	if err := s.signed(f, "ruleClasses", c.Signers, known); err != nil {
		return err
	}
	for i, rule := range f.Rules.Rules {
		at := fmt.Sprintf("spec.rules[%d]", i)
		// check: RuleRefused: a rule under an id that its class must not use takes the place of another
		if !slices.Contains(c.AllowedRuleIDs, "*") && !slices.Contains(c.AllowedRuleIDs, rule.ID) {
			return decision.Errorf(decision.RuleRefused, "the class %.63q may not hold the rule %.63q", f.Class, rule.ID).At(at).
				Try("leave it out, or let the policy allow its id")
		}
		// check: RuleRefused: an overlay that switches a rule off blinds detection for its pods
		if !rule.Enabled && !c.MayDisable {
			return decision.Errorf(decision.RuleRefused, "the class %.63q may not switch off the rule %.63q", f.Class, rule.ID).At(at + ".enabled").
				Try("leave the rule out, or let the policy say mayDisable")
		}
	}
	// check: RuleRefused: without a bundle it would hold for every pod
	if f.Class == overlay && f.Bundle == "" {
		return decision.Errorf(decision.RuleRefused, "Rules of the class overlay name no bundle").At(labelPath(fragment.LabelBundle)).Try("sign them with --bundle NAME")
	}
	return nil
}
