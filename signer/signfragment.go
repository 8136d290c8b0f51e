package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// fragmentTerms are what sign writes into a fragment; what is empty stays as the fragment has it.
type fragmentTerms struct {
	class, bundle, version string
	embed                  bool
	key                    string // its file
	flag                   string // one that was given and is for fragments alone, "" where none was
}

// labels are those that the terms set.
func (t fragmentTerms) labels() map[string]string {
	all := map[string]string{fragment.LabelClass: t.class, fragment.LabelBundle: t.bundle, fragment.LabelVersion: t.version}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// isFragment tells the kinds that are signed in kubescape's format.
func isFragment(o manifest.Object) bool {
	group, _, _ := strings.Cut(fragment.APIVersionOf(o.Kind), "/")
	return group != "" && o.Group() == group
}

// fragmentNumbers are the places of fragments among the objects of a file.
func fragmentNumbers(objects []manifest.Object) []int {
	var all []int
	for i, o := range objects {
		if isFragment(o) {
			all = append(all, i)
		}
	}
	return all
}

// fragments signs those of a file. It gives the new file, and what the file must verify as.
func (s *signing) fragments(path string, f *manifest.File) (*manifest.File, map[int]*fragmentDraft, error) {
	objects, err := f.Objects()
	if err != nil {
		return nil, nil, refused(path, malformedAt(err))
	}
	at := fragmentNumbers(objects)
	if len(at) == 0 {
		return f, nil, nil
	}
	key, err := s.fragmentKey()
	if err != nil {
		return nil, nil, err
	}
	before := map[int]*fragment.Fragment{}
	var labels []manifest.Value
	for _, i := range at {
		before[i] = signedBefore(objects[i])
		labels = append(labels, values(i, "labels", s.fragment.labels())...)
	}
	if f, err = setAll(path, f, labels); err != nil {
		return nil, nil, err
	}
	return s.signFragments(path, f, key, before)
}

// signFragments signs objects as they stand, labels and all.
func (s *signing) signFragments(path string, f *manifest.File, key *fragmentKey, before map[int]*fragment.Fragment) (*manifest.File, map[int]*fragmentDraft, error) {
	objects, err := f.Objects()
	if err != nil {
		return nil, nil, refused(path, malformedAt(err))
	}
	drafts := map[int]*fragmentDraft{}
	var annotations []manifest.Value
	for _, i := range slices.Sorted(maps.Keys(before)) {
		s.subject = place(path, objects[i].Where) + ": " + objectName(objects[i])
		d, err := newFragmentDraft(objects[i], key)
		if err != nil {
			return nil, nil, refused(s.subject, err)
		}
		d.before = before[i]
		drafts[i] = d
		annotations = append(annotations, values(i, "annotations", d.annotations(key, s.fragment.embed))...)
	}
	if f, err = setAll(path, f, annotations); err != nil {
		return nil, nil, err
	}
	f, err = s.dropStale(f, objects, drafts)
	if err != nil {
		return nil, nil, refused(path, badStyle(err))
	}
	return f, drafts, nil
}

// rekorBundle is the annotation of keyless signing.
const rekorBundle = "signature.kubescape.io/rekor-bundle"

// dropStale takes out what an earlier signature left, and readers would go by.
func (s *signing) dropStale(f *manifest.File, objects []manifest.Object, drafts map[int]*fragmentDraft) (*manifest.File, error) {
	stale := []string{rekorBundle}
	if !s.fragment.embed {
		stale = append(stale, fragment.AnnotationContent)
	}
	for i := range drafts {
		for _, name := range stale {
			path := []string{"metadata", "annotations", name}
			if objects[i].Node.Path(path...) == nil {
				continue
			}
			next, err := f.DropKey(i, path...)
			if err != nil {
				return nil, err
			}
			f = next
		}
	}
	return f, nil
}

// fragmentKey is the one key of --key: the format has room for one signature.
func (s *signing) fragmentKey() (*fragmentKey, error) {
	if len(s.keys) != 1 {
		return nil, usage("a fragment has one signature: give one --key")
	}
	key, err := s.c.newFragmentKey(s.keys[0])
	if err != nil {
		return nil, undecided(fmt.Errorf("key %q: %w", s.fragment.key, err))
	}
	return key, nil
}

func values(object int, field string, texts map[string]string) []manifest.Value {
	var all []manifest.Value
	for _, name := range sortedKeys(texts) {
		all = append(all, manifest.Value{Object: object, Path: []string{"metadata", field, name}, Text: texts[name]})
	}
	return all
}

func setAll(path string, f *manifest.File, values []manifest.Value) (*manifest.File, error) {
	next, err := f.SetAll(values)
	if err != nil {
		return nil, refused(path, badStyle(err))
	}
	return next, nil
}

func badStyle(err error) error {
	return decision.Errorf(decision.Malformed, "%v", err).Try("write metadata.labels and metadata.annotations as plain maps of texts, and sign again")
}

// fragmentDraft is a fragment that is signed, and what its object must verify as.
type fragmentDraft struct {
	content   []byte
	digest    string
	signature []byte
	signer    string
	before    *fragment.Fragment // what was signed before; nil where nothing was, or it does not verify
}

func newFragmentDraft(o manifest.Object, key *fragmentKey) (*fragmentDraft, error) {
	carrier, err := parseFragment(o)
	if err != nil {
		return nil, err
	}
	content, err := fragment.Content(carrier)
	if err != nil {
		return nil, err
	}
	digest, err := fragment.Digest(content)
	if err != nil {
		return nil, err
	}
	signature, err := key.sign(digest)
	return &fragmentDraft{content: content, digest: digest, signature: signature, signer: key.fingerprint}, err
}

func (d *fragmentDraft) annotations(key *fragmentKey, embed bool) map[string]string {
	return fragment.Annotations(d.content, key.certificate, d.signature, embed, key.at)
}

func parseFragment(o manifest.Object) (*fragment.Object, error) {
	if err := o.Node.Check(); err != nil {
		return nil, malformedAt(err)
	}
	raw, err := o.Node.JSON()
	if err != nil {
		return nil, malformedAt(err)
	}
	return fragment.Parse(raw)
}

func signedBefore(o manifest.Object) *fragment.Fragment {
	carrier, err := parseFragment(o)
	if err != nil {
		return nil
	}
	f, err := fragment.Verify(carrier)
	if err != nil {
		return nil
	}
	return f
}

// checkFragment verifies a fragment of the output as its readers will.
func (s *signing) checkFragment(o manifest.Object, d *fragmentDraft) error {
	carrier, err := parseFragment(o)
	if err != nil {
		return err
	}
	f, err := fragment.Verify(carrier)
	if err != nil {
		return err
	}
	// check: BytesChanged: what the output verifies as must be what the key signed
	if f.Digest != d.digest || f.Signer != d.signer {
		return decision.Errorf(decision.BytesChanged, "the output would verify as other content, or by another key, than was signed")
	}
	// check: NotCanonical: what people read in the output must be what the key signed
	if len(f.Diverges) > 0 {
		return decision.Errorf(decision.NotCanonical, "it is not written as it would be signed in: %s", strings.Join(f.Diverges, ", ")).
			Try("write numbers in their shortest form, 1.5 and not 1.50")
	}
	if err := annotationsFit(o); err != nil {
		return err
	}
	if err := s.fits(o); err != nil {
		return err
	}
	s.adviseFragment(f, d.before)
	return s.judgedFragment(o)
}

// annotationsFit refuses more annotations than the API server takes.
func annotationsFit(o manifest.Object) error {
	size := annotations(o)
	// check: TooLarge: what cannot be stored would be refused only at the cluster
	if size > maxAnnotations {
		return decision.Errorf(decision.TooLarge, "the annotations take %d bytes, and the API server takes %d", size, maxAnnotations).
			Try("split the fragment, or sign with --embed-content=false: then the object must be stored exactly as it stands")
	}
	return nil
}

// adviseFragment says what is valid and probably not meant.
func (s *signing) adviseFragment(f, before *fragment.Fragment) {
	switch {
	case f.Class == "":
		s.advise("%s: it has no class: no trust policy can allow it; give --class", s.subject)
	case f.Bundle == "" && (f.Kind == fragment.KindContainerProfile || f.Kind == fragment.KindRules && f.Class != baseRules):
		s.advise("%s: it has no bundle, so that none takes it up; give --bundle", s.subject)
	case f.Profile != nil && len(f.Profile.Set()) == 0:
		s.advise("%s: its spec sets nothing; was it read from a list that leaves specs out?", s.subject)
	}
	if f.Kind == fragment.KindRuleBinding || f.Kind == fragment.KindSeccompProfile {
		s.advise("%s: signing a %s is experimental", s.subject, f.Kind)
	}
	if before == nil || sameSlot(before, f) && before.Digest == f.Digest && before.Bytes == f.Bytes {
		return
	}
	if sameSlot(before, f) && f.Version <= before.Version {
		s.advise("%s: version %d was signed before with other content: where that was stored, this is refused; give --version %d", s.subject, before.Version, before.Version+1)
	}
}

// baseRules is the class of Rules that are for every pod.
const baseRules = "base"

func sameSlot(a, b *fragment.Fragment) bool { return a.Bundle == b.Bundle && a.Class == b.Class }

// judgedFragment refuses what the cluster would refuse.
func (s *signing) judgedFragment(o manifest.Object) error {
	if s.judge == nil {
		return nil
	}
	v, guarded := s.judge.object(o)
	// check: ClassUnknown,SignerUnknown,PathRefused: what the cluster refuses is better found before it is signed
	if !guarded || !v.Decision.Allowed() {
		return asError(v.Decision)
	}
	for _, w := range v.Decision.Warnings {
		s.advise("%s: %s", s.subject, w)
	}
	return nil
}
