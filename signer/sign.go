package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// scriptSigner signs phase scripts with one key.
type scriptSigner struct {
	c   *cli
	key ssh.Signer
	add bool // keep signatures by other keys
}

// file signs every SSHJoinProfile of a text and gives the new text.
func (s *scriptSigner) file(path string, data []byte) ([]byte, error) {
	f, err := manifest.Read(data)
	if err != nil {
		return nil, refused(path, decision.Errorf(decision.Malformed, "%v", err))
	}
	objects, err := f.Objects()
	if err != nil {
		return nil, refused(path, decision.Errorf(decision.Malformed, "%v", err))
	}
	signed := 0
	for i, o := range objects {
		if o.Kind != object.KindJoinProfile || !isGuarded(o) {
			s.c.say("note", "%s: %s is not signed: only SSHJoinProfile holds phase scripts", place(path, o.Where), objectName(o))
			continue
		}
		if f, err = s.object(f, i, o); err != nil {
			return nil, refused(place(path, o.Where)+": "+objectName(o), err)
		}
		signed++
	}
	if signed == 0 {
		return nil, undecided(fmt.Errorf("%s: there is no SSHJoinProfile to sign", path))
	}
	return f.Data, s.check(path, f, objects)
}

// object signs the phases of one profile.
func (s *scriptSigner) object(f *manifest.File, i int, o manifest.Object) (*manifest.File, error) {
	p, err := parseProfile(o)
	if err != nil {
		return nil, err
	}
	for _, phase := range p.Phases() {
		text, err := s.phase(phase, []byte(p.Scripts[phase]), p.Signatures[phase])
		if err != nil {
			return nil, err
		}
		if f, err = f.Set(i, []string{"spec", "signatures", string(phase)}, text); err != nil {
			return nil, decision.Errorf(decision.Malformed, "%v", err).At(string(phase)).
				Try("delete that signature by hand and sign again")
		}
	}
	return f, nil
}

func parseProfile(o manifest.Object) (*object.JoinProfile, error) {
	if err := o.Node.Check(); err != nil {
		return nil, decision.Errorf(decision.Malformed, "%v", err)
	}
	raw, err := o.Node.JSON()
	if err != nil {
		return nil, decision.Errorf(decision.Malformed, "%v", err)
	}
	return object.ParseJoinProfile(raw)
}

// phase gives the signatures of a script after signing.
func (s *scriptSigner) phase(phase script.Phase, text []byte, before string) (string, error) {
	// check: TemplateFound,TooLarge,Malformed: what every verifier refuses must not be vouched for
	if err := script.Check(text); err != nil {
		return "", decision.From(err).At(string(phase))
	}
	// check: WarrantMalformed: a limit that this version does not read must not look as if it had been checked
	if script.HasWarrantLine(text) {
		return "", decision.Errorf(decision.WarrantMalformed, "the script has #warrant: lines, and this version cannot read them").At(string(phase))
	}
	own, err := sshsig.Sign(s.c.rand, s.key, script.Namespace, text)
	if err != nil {
		return "", decision.From(err).At(string(phase))
	}
	if !s.add {
		return string(own), nil
	}
	kept, err := withOwn(before, string(own), s.key.PublicKey())
	if err != nil {
		return "", decision.From(err).At(string(phase)).Try("sign without --add, then let the others add theirs")
	}
	return strings.Join(kept, ""), nil
}

// withOwn puts a signature in the place of an older one by the same key, or behind the others.
func withOwn(before, own string, key ssh.PublicKey) ([]string, error) {
	if before == "" {
		return []string{own}, nil
	}
	parsed, err := sshsig.ParseAll([]byte(before))
	if err != nil {
		return nil, err
	}
	all := blocks(before)
	if len(all) != len(parsed) {
		return nil, decision.Errorf(decision.SignatureMalformed, "the signatures cannot be taken apart")
	}
	at := slices.IndexFunc(parsed, func(p *sshsig.Signature) bool { return sameKey(p.PublicKey(), key) })
	if at < 0 {
		return append(all, own), nil
	}
	all[at] = own
	return all, nil
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// check reads the output as the API server would and verifies every signature in it.
func (s *scriptSigner) check(path string, f *manifest.File, before []manifest.Object) error {
	again, err := manifest.Read(f.Data)
	if err != nil {
		return undecided(fmt.Errorf("%s: reading the output again: %v", path, err))
	}
	objects, err := again.Objects()
	if err != nil || len(objects) != len(before) {
		return undecided(fmt.Errorf("%s: the output holds other objects than the input", path))
	}
	for i, o := range objects {
		if o.Kind != object.KindJoinProfile || !isGuarded(o) {
			continue
		}
		was, err := parseProfile(before[i])
		if err != nil {
			return refused(path, err)
		}
		p, err := parseProfile(o)
		if err == nil {
			err = s.covered(p, was)
		}
		if err != nil {
			return refused(place(path, o.Where)+": "+objectName(o), err)
		}
	}
	return nil
}

// covered verifies that each signature in a profile covers the script that was there before signing.
func (s *scriptSigner) covered(p, was *object.JoinProfile) error {
	for _, phase := range was.Phases() {
		if p.Scripts[phase] != was.Scripts[phase] {
			return decision.Errorf(decision.BytesChanged, "the output would hold other bytes than the input").At(string(phase))
		}
		signatures, err := sshsig.ParseAll([]byte(p.Signatures[phase]))
		if err != nil {
			return decision.From(err).At(string(phase))
		}
		for _, sig := range signatures {
			// check: SignatureInvalid: an older signature by someone else may be of other bytes
			if err := sig.Verify(script.Namespace, []byte(p.Scripts[phase])); err != nil {
				e := decision.From(err).At(string(phase))
				e.What = fmt.Sprintf("the signature by %s: %s", sshsig.Fingerprint(sig.PublicKey()), e.What)
				return e.Try("sign without --add, then let the others add theirs")
			}
		}
		if sshsig.IsSecurityKey(signatures[0].PublicKey()) {
			s.c.say("warning", "%s/%s: %s: the first signature is by a security key, which karpenter-provider-ssh cannot verify: sign with another key first, then with this one and --add",
				p.Kind, p.Name, phase)
		}
	}
	return nil
}

var errNoScripts = errors.New("there are no phase scripts (install.sh, join.sh, leave.sh, uninstall.sh) in it")
