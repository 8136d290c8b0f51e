package verify

import (
	"maps"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// RootAnnotation of a composite holds its Merkle root.
const RootAnnotation = object.GroupHostwarrant + "/merkle-root"

// smallContent is what embedded content may have whatever the object has. Beyond it the content of an
// honest object, whose stored spec says the same, is smaller than twice the object.
const smallContent = 64 << 10

// fragmentWrite judges a write of one of kubescape's kinds.
func (s Snapshot) fragmentWrite(r Request) (Answer, error) {
	o, err := fragment.Parse(r.Object)
	if err != nil {
		return Answer{}, err
	}
	if err := named(r, o.Meta); err != nil {
		return Answer{}, err
	}
	if err := s.usable(); err != nil {
		return Answer{}, err
	}
	if sort := s.without(r.Kind); sort != "" {
		d := decision.Admit(r.Kind, r.Name, "the policy gives no "+sort)
		d.Reason = decision.Unguarded
		d.Warnings = []string{"hostwarrant: the trust policy has no " + sort + ": nobody vouches for objects of kind " + r.Kind}
		return Answer{OutcomeExempt, d}, nil
	}
	old := s.stored(r)
	if d, judged := s.composite(r, o); judged {
		return s.answer(r, d), nil
	}
	if s.learned(r, o, old) {
		return Answer{OutcomeAllow, decision.Admit(r.Kind, r.Name, "learned by "+r.User)}, nil
	}
	limit := 2*int64(len(r.Object)) + smallContent
	// check: TooLarge: a few KiB of an annotation unpack to megabytes, which are hashed before anybody vouched for them
	if fragment.Unpacks(o, limit) {
		return Answer{}, decision.Errorf(decision.TooLarge, "the embedded content has more than %d bytes, and the object %d", limit, len(r.Object)).
			Try("apply the object with the spec that was signed: hostwarrant inspect FILE shows it")
	}
	f, d := s.fragment(o, old)
	if d.Allowed() {
		if err := asSigned(o, f); err != nil {
			d = decision.From(err).Denied(o.Kind, o.Name)
		}
	}
	return s.answer(r, d), nil
}

// without names the part of a policy that a kind is judged by and that the policy does not give:
// then it says nothing of the kind, as a policy of join profiles alone.
func (s Snapshot) without(kind string) string {
	switch {
	case kind == object.KindRules && len(s.Policy.RuleClasses) == 0:
		return "ruleClasses"
	case kind == object.KindRuleBinding && len(s.Policy.BindingClasses) == 0:
		return "bindingClasses"
	case (kind == object.KindContainerProfile || kind == object.KindSeccompProfile) && len(s.Policy.FragmentClasses) == 0:
		return "fragmentClasses"
	default:
		return ""
	}
}

// stored is the object that an update takes the place of; nil for a creation.
func (s Snapshot) stored(r Request) *fragment.Object {
	if r.Operation != Update {
		return nil
	}
	old, err := fragment.Parse(r.Old)
	if err != nil { // a person may stand behind what cannot be read
		old = &fragment.Object{Meta: object.Meta{Kind: r.Kind, Name: r.Name, Annotations: map[string]string{object.ManagedByAnnotation: "User"}}}
	}
	return old
}

// learned reports whether an agent writes what it saw, and takes the place of nothing else.
func (s Snapshot) learned(r Request, o, old *fragment.Object) bool {
	if r.Kind != object.KindContainerProfile && r.Kind != object.KindSeccompProfile {
		return false
	}
	if !slices.Contains(s.Policy.Learners, r.User) {
		return false
	}
	// check: Unsigned: an agent on one node that was taken over must not write what others enforce as a person's, or take the place of that
	if o.Claimed() || old != nil && old.Claimed() {
		return false
	}
	return true
}

// composite judges a write under the name of a bundle: what is stored there is what agents enforce,
// and is ours alone. It does not judge other names.
func (s Snapshot) composite(r Request, o *fragment.Object) (decision.Decision, bool) {
	if r.Kind != object.KindContainerProfile {
		return decision.Decision{}, false
	}
	if s.Controller != "" && r.User == s.Controller && assembled(o) {
		return decision.Admit(r.Kind, r.Name, "the composite of the bundle"), true
	}
	// check: CompositeForeign: whoever writes the composite decides what every agent of the bundle enforces, and no signature is asked for it
	if s.bundleName(o.Namespace, o.Name) {
		return decision.Errorf(decision.CompositeForeign, "the name is that of a bundle, whose profile hostwarrant-controller assembles").At("metadata.name").
			Try("sign a fragment of the bundle under another name: "+signFragment).Denied(r.Kind, o.Name), true
	}
	return decision.Decision{}, false
}

// assembled reports whether an object has the shape of a composite: no signature, no class.
func assembled(o *fragment.Object) bool {
	for name := range o.Annotations {
		if object.Claims(name) {
			return false
		}
	}
	_, classed := o.Labels[fragment.LabelClass]
	return !classed && o.Annotations[RootAnnotation] != ""
}

// bundleName reports whether a bundle of that name is known: by the policy, or by what was seen in the namespace.
func (s Snapshot) bundleName(namespace, name string) bool {
	_, named := s.Policy.Bundles[name]
	return named || s.Ledger != nil && s.Ledger.Bundle(namespace, name)
}

// asSigned wants the stored object to say what was signed, since people read that, and tools edit it.
func asSigned(o *fragment.Object, f *fragment.Fragment) error {
	const hint = "apply the file as it was signed, or sign what is stored: " + signFragment
	// check: Tampered: what people see and edit would not be what is enforced
	if len(f.Diverges) > 0 {
		return decision.Errorf(decision.Tampered, "the stored spec is not the signed one in: %s", strings.Join(f.Diverges, ", ")).At("spec").Try(hint)
	}
	// check: Tampered: labels choose bundle and class for every reader that does not open the signed content
	if name := foreignLabel(o.Labels, f.Labels); name != "" {
		return decision.Errorf(decision.Tampered, "the stored label is not the signed one").At(labelPath(name)).Try(hint)
	}
	return nil
}

// foreignLabel names a signed label that is stored otherwise, or a stored one of kubescape that was
// not signed. Others may be added: GitOps tools mark what they apply.
func foreignLabel(stored, signed map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(signed)) {
		if value, ok := stored[name]; !ok || value != signed[name] {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		domain, _, _ := strings.Cut(name, "/")
		if _, ok := signed[name]; !ok && (domain == object.GroupKubescape || strings.HasSuffix(domain, "."+object.GroupKubescape)) {
			return name
		}
	}
	return ""
}
