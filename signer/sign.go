package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/verify"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// file signs what can be signed of a text, and gives the new text.
func (s *signing) file(path string, data []byte) ([]byte, error) {
	f, err := manifest.Read(data)
	if err != nil {
		return nil, refused(path, malformedAt(err))
	}
	objects, err := f.Objects()
	if err != nil {
		return nil, refused(path, malformedAt(err))
	}
	if err := s.suits(path, objects); err != nil {
		return nil, err
	}
	f, drafts, err := s.profiles(path, f, objects)
	if err != nil {
		return nil, err
	}
	f, fragments, err := s.fragments(path, f)
	if err != nil {
		return nil, err
	}
	return f.Data, s.check(path, f, len(objects), drafts, fragments)
}

// suits names what is not signed, and refuses flags that nothing in the file is for.
func (s *signing) suits(path string, objects []manifest.Object) error {
	profiles, fragments := 0, 0
	for _, object := range objects {
		switch {
		case isProfile(object):
			profiles++
		case isFragment(object):
			fragments++
		default:
			s.c.say("note", "%s: %s is not signed: %s are", place(path, object.Where), objectName(object), signedKinds)
		}
	}
	switch {
	case profiles+fragments == 0:
		return undecided(fmt.Errorf("%s: there is nothing to sign: no %s", path, signedKinds))
	case fragments == 0 && s.fragment.flag != "":
		return usage("--%s is for fragments, and %s holds none", s.fragment.flag, path)
	case profiles == 0 && s.scriptFlag != "":
		return usage("--%s is for phase scripts, and %s holds none", s.scriptFlag, path)
	case fragments > 0 && s.fragment.version != "" && !wholeNumber.MatchString(s.fragment.version):
		return usage("--version of a fragment is a whole number, not %.80q", s.fragment.version)
	}
	return nil
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)

const signedKinds = "SSHJoinProfile, ContainerProfile, Rules, RuntimeRuleAlertBinding, SeccompProfile"

func isProfile(o manifest.Object) bool { return o.Kind == object.KindJoinProfile && isGuarded(o) }

// profiles signs every SSHJoinProfile of a file.
func (s *signing) profiles(path string, f *manifest.File, objects []manifest.Object) (*manifest.File, map[int]*draft, error) {
	drafts := map[int]*draft{}
	for i, o := range objects {
		if !isProfile(o) {
			continue
		}
		s.subject = place(path, o.Where) + ": " + objectName(o)
		var err error
		if f, drafts[i], err = s.object(f, i, o); err != nil {
			return nil, nil, inContext(s.subject, err)
		}
	}
	return f, drafts, nil
}

// inContext keeps a mistake in usage what it is, and makes a refusal of everything else.
func inContext(context string, err error) error {
	if _, ok := err.(*failure); ok { //nolint:errorlint // only what signing itself returns
		return err
	}
	return refused(context, err)
}

// object signs one profile of a file.
func (s *signing) object(f *manifest.File, i int, o manifest.Object) (*manifest.File, *draft, error) {
	p, err := parseProfile(o)
	if err != nil {
		return nil, nil, err
	}
	d := draftOf(p)
	if err := s.prepare(d); err != nil {
		return nil, nil, err
	}
	if s.others == onlyAdd && !sameTexts(d, p) {
		return nil, nil, decision.Errorf(decision.BytesChanged, "with --add the scripts may not change").
			Try("leave out the flags and files that state a warrant")
	}
	if err := s.sign(d); err != nil {
		return nil, nil, err
	}
	f, err = write(f, i, d, p)
	return f, d, err
}

func draftOf(p *object.JoinProfile) *draft {
	d := &draft{
		name: p.Name, version: p.Version, timeouts: maps.Clone(p.Timeouts),
		scripts: map[script.Phase][]byte{}, signatures: maps.Clone(p.Signatures),
	}
	for phase, text := range p.Scripts {
		d.scripts[phase] = []byte(text)
	}
	return d
}

func sameTexts(d *draft, p *object.JoinProfile) bool {
	return d.version == p.Version && !slices.ContainsFunc(d.phases(), func(phase script.Phase) bool { return string(d.scripts[phase]) != p.Scripts[phase] })
}

// write puts into the file what signing changed of a profile, and nothing else.
func write(f *manifest.File, i int, d *draft, p *object.JoinProfile) (*manifest.File, error) {
	set := func(path []string, before, after string) error {
		if before == after {
			return nil
		}
		next, err := f.Set(i, path, after)
		if err != nil {
			return decision.Errorf(decision.Malformed, "%v", err).Try("write it as a | block scalar, and sign again")
		}
		f = next
		return nil
	}
	if err := set([]string{"spec", "version"}, p.Version, d.version); err != nil {
		return nil, err
	}
	for _, phase := range d.phases() {
		if bound := d.timeouts[phase]; bound != p.Timeouts[phase] {
			if err := set([]string{"spec", "timeouts", string(phase)}, "", seconds(bound)); err != nil {
				return nil, err
			}
		}
		if err := set([]string{"spec", "scripts", string(phase)}, p.Scripts[phase], string(d.scripts[phase])); err != nil {
			return nil, err
		}
		if err := set([]string{"spec", "signatures", string(phase)}, p.Signatures[phase], d.signatures[phase]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func parseProfile(o manifest.Object) (*object.JoinProfile, error) {
	if err := o.Node.Check(); err != nil {
		return nil, malformedAt(err)
	}
	raw, err := o.Node.JSON()
	if err != nil {
		return nil, malformedAt(err)
	}
	return object.ParseJoinProfile(raw)
}

// check reads the output as the API server would and verifies every signature in it.
func (s *signing) check(path string, f *manifest.File, count int, drafts map[int]*draft, fragments map[int]*fragmentDraft) error {
	again, err := manifest.Read(f.Data)
	if err != nil {
		return undecided(fmt.Errorf("%s: reading the output again: %v", path, err))
	}
	objects, err := again.Objects()
	if err != nil || len(objects) != count {
		return undecided(fmt.Errorf("%s: the output holds other objects than the input", path))
	}
	for _, i := range slices.Sorted(maps.Keys(drafts)) {
		s.subject = place(path, objects[i].Where) + ": " + objectName(objects[i])
		if err := s.checkObject(objects[i], drafts[i]); err != nil {
			return refused(s.subject, err)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(fragments)) {
		s.subject = place(path, objects[i].Where) + ": " + objectName(objects[i])
		if err := s.checkFragment(objects[i], fragments[i]); err != nil {
			return refused(s.subject, err)
		}
	}
	return nil
}

func (s *signing) checkObject(o manifest.Object, d *draft) error {
	p, err := parseProfile(o)
	if err != nil {
		return err
	}
	if err := s.fits(o); err != nil {
		return err
	}
	if err := s.covered(p, d); err != nil {
		return err
	}
	return s.judged(p)
}

// covered verifies that each signature in a profile covers the script that was signed, and that the
// warrants in it agree with the profile and with each other.
func (s *signing) covered(p *object.JoinProfile, d *draft) error {
	for _, phase := range d.phases() {
		// check: BytesChanged: what the API server would read must be what the key signed
		if p.Scripts[phase] != string(d.scripts[phase]) {
			return decision.Errorf(decision.BytesChanged, "the output would hold other bytes than were signed").At(string(phase))
		}
		signatures, err := sshsig.ParseAllWithCertificates([]byte(p.Signatures[phase]))
		if err != nil {
			return decision.From(err).At(string(phase))
		}
		for _, sig := range signatures {
			// check: SignatureInvalid: the output would hold a signature of other bytes
			if err := sig.Verify(script.Namespace, d.scripts[phase]); err != nil {
				return decision.From(err).At(string(phase))
			}
		}
		if sshsig.IsSecurityKey(signatures[0].PublicKey()) {
			s.advise("%s: %s: the first signature is by a security key, which karpenter-provider-ssh cannot verify: let another key sign too, it is put first", s.subject, phase)
		}
	}
	_, err := verify.Warrants(p)
	return err
}

var errNoScripts = errors.New("there are no phase scripts (install.sh, join.sh, leave.sh, uninstall.sh) in it")
