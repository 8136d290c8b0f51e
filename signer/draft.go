package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// draft is a profile on its way to being signed, whatever it is written in.
type draft struct {
	name       string
	version    string
	timeouts   map[script.Phase]time.Duration
	scripts    map[script.Phase][]byte
	signatures map[script.Phase]string
}

// signing says how a draft becomes a signed profile.
type signing struct {
	c       *cli
	keys    []ssh.Signer
	terms   terms
	others  othersMode
	fixCRLF bool
	// termsFile is the file that terms were read from, "" where there is none.
	termsFile string
	judge     *judge // nil where no policy is given
	fragment  fragmentTerms
	// scriptFlag is a flag that was given and is for phase scripts alone, "" where none was.
	scriptFlag string

	stale   bool     // an earlier signature was of other bytes
	subject string   // what is being signed, for messages
	advice  []string // said once the whole command has worked
}

// advise keeps a message until nothing can be refused any more: advice before a refusal is noise.
func (s *signing) advise(format string, args ...any) {
	s.advice = append(s.advice, fmt.Sprintf(format, args...))
}

// othersMode says what becomes of signatures by other keys.
type othersMode int

const (
	keepValid othersMode = iota // those that still cover the script stay
	onlyAdd                     // all must still cover it, and the scripts stay as they are
	ownOnly                     // none stays
)

// prepare makes the bytes that will be signed: line ends and warrants. It sets the version to the serial.
func (s *signing) prepare(d *draft) error {
	for _, phase := range d.phases() {
		text, err := s.readable(d.scripts[phase])
		if err != nil {
			return decision.From(err).At(string(phase))
		}
		d.scripts[phase] = text
	}
	blocks, err := s.warrants(d)
	if err != nil || blocks == nil {
		return err
	}
	for _, phase := range leavingFirst() {
		w := blocks[phase]
		if w == nil {
			continue
		}
		if phase == script.Install || phase == script.Join {
			w.LeaveSHA256, w.UninstallSHA256 = d.digest(script.Leave), d.digest(script.Uninstall)
		}
		text, err := warrant.Set(d.scripts[phase], w)
		if err != nil {
			return decision.From(err).At(string(phase))
		}
		d.scripts[phase] = text
		d.version = strconv.FormatInt(w.Serial, 10)
		s.allow(d, w)
	}
	return nil
}

// allow lets the object give a script the time that its warrant asks for.
func (s *signing) allow(d *draft, w *warrant.Warrant) {
	was, given := d.timeouts[w.Phase]
	if s.others == onlyAdd || !d.raise(w) || !given {
		return
	}
	s.c.say("note", "%s: spec.timeouts.%s rises from %s to the %s of the warrant", s.subject, w.Phase, was, d.timeouts[w.Phase])
}

// raise sets the bound of a phase where it, or its default, is below what the warrant asks for. Uninstall
// has none.
func (d *draft) raise(w *warrant.Warrant) bool {
	bound, given := d.timeouts[w.Phase]
	if !given {
		bound = time.Duration(warrant.DefaultTimeout(w.Phase)) * time.Second
	}
	need := time.Duration(w.TimeoutSeconds()) * time.Second
	if w.Phase == script.Uninstall || bound >= need {
		return false
	}
	d.timeouts[w.Phase] = need
	return true
}

// leavingFirst is the order in which warrants are written: those of install and join hold the digests
// of the scripts that leave.
func leavingFirst() []script.Phase {
	return []script.Phase{script.Leave, script.Uninstall, script.Install, script.Join}
}

func (d *draft) phases() []script.Phase { return slices.Sorted(maps.Keys(d.scripts)) }

// digest is the SHA-256 of a script, "" where there is none.
func (d *draft) digest(phase script.Phase) string {
	text, there := d.scripts[phase]
	if !there {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// readable gives a script with the line ends that every reader takes.
func (s *signing) readable(text []byte) ([]byte, error) {
	if s.fixCRLF {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	// check: TemplateFound,TooLarge,Malformed: what every verifier refuses must not be vouched for
	if err := script.Check(text); err != nil {
		return nil, err
	}
	// check: Malformed: bash takes the CR of a Windows line end for part of a word
	if at := bytes.IndexByte(text, '\r'); at >= 0 {
		return nil, decision.Errorf(decision.Malformed, "line %d holds a carriage return", bytes.Count(text[:at], []byte("\n"))+1).
			Try("convert the line ends, or let sign do it: --fix-crlf")
	}
	return text, nil
}

// warrants gives the warrant of each phase; nil where the profile is to have none.
func (s *signing) warrants(d *draft) (map[script.Phase]*warrant.Warrant, error) {
	before := map[script.Phase]*warrant.Warrant{}
	for _, phase := range d.phases() {
		w, err := warrant.Find(d.scripts[phase])
		if err != nil {
			return nil, decision.From(err).At(string(phase)).
				Try("mend the line, or delete the #warrant: lines and sign with --serial and --target; hostwarrant help warrant")
		}
		if w != nil {
			before[phase] = w
		}
	}
	if !s.terms.given() && len(before) == 0 {
		if s.others == onlyAdd {
			return nil, nil // the first signer was told
		}
		// check: WarrantMissing: a file of terms that states none, signed as if it had
		if s.termsFile != "" {
			return nil, decision.Errorf(decision.WarrantMissing, "%s states neither a serial nor targets", s.termsFile).
				Try("give it both, or remove it to sign without a warrant")
		}
		s.advise("%s: signed without a warrant: anyone who carries it can run it on any host, for ever; give --serial and --target", s.subject)
		return nil, nil
	}
	all := map[script.Phase]*warrant.Warrant{}
	for _, phase := range d.phases() {
		if before[phase] == nil && !s.terms.given() {
			return nil, decision.Errorf(decision.WarrantMissing, "other phases of the profile have a warrant, this one has none").
				At(string(phase)).Try("give --serial and --target, or a warrant file with --warrant")
		}
		w, err := s.terms.warrant(d.name, phase, before[phase], s.c.now())
		if err != nil {
			return nil, err
		}
		all[phase] = w
	}
	return all, nil
}

// sign makes the signatures of all phases.
func (s *signing) sign(d *draft) error {
	for _, phase := range d.phases() {
		text, err := s.phase(d, phase)
		if err != nil {
			return decision.From(err).At(string(phase))
		}
		d.signatures[phase] = text
	}
	w, err := warrant.Find(d.scripts[script.Join])
	if err != nil || w == nil {
		return nil //nolint:nilerr // what is wrong with a warrant was said before
	}
	if s.stale && s.terms.Serial == nil {
		s.advise("%s: the scripts are not what was signed before: if serial %d is out, cluster and hosts refuse other bytes under it; give --serial %d",
			s.subject, w.Serial, w.Serial+1)
	}
	if !w.Never && s.c.now().Unix() >= w.NotAfter {
		s.advise("%s: the warrant of join ended at %s: nobody will run it; --serial %d brings a new validity", s.subject, stamp(time.Unix(w.NotAfter, 0)), w.Serial+1)
	}
	return nil
}

// phase gives the signatures of one script: those that stay, and one of each key.
func (s *signing) phase(d *draft, phase script.Phase) (string, error) {
	kept, err := s.kept(d, phase)
	if err != nil {
		return "", err
	}
	for _, key := range s.keys {
		own, err := sshsig.SignWithCertificates(s.c.rand, key, script.Namespace, d.scripts[phase])
		if err != nil {
			return "", err
		}
		if kept, err = withOwn(kept, string(own), sshsig.CertifiedKey(key.PublicKey())); err != nil {
			return "", err
		}
	}
	text := strings.Join(kept, "")
	_, err = sshsig.ParseAllWithCertificates([]byte(text))
	return text, err // more than may be, or too long
}

// kept gives the signatures that stay as they are.
func (s *signing) kept(d *draft, phase script.Phase) ([]string, error) {
	if s.others == ownOnly || d.signatures[phase] == "" {
		return nil, nil
	}
	const next = "sign with --replace, then let the others add theirs"
	parsed, err := sshsig.ParseAllWithCertificates([]byte(d.signatures[phase]))
	if err != nil {
		return nil, decision.From(err).Try(next)
	}
	all := blocks(d.signatures[phase])
	// check: SignatureMalformed: a block that is taken for another one would be kept in its place
	if len(all) != len(parsed) {
		return nil, decision.Errorf(decision.SignatureMalformed, "the signatures cannot be taken apart").Try(next)
	}
	var kept []string
	for i, sig := range parsed {
		err := sig.Verify(script.Namespace, d.scripts[phase])
		if err == nil {
			kept = append(kept, all[i])
			continue
		}
		s.stale = true
		if s.holds(sig.PublicKey()) {
			continue // it gets a new one
		}
		name := sshsig.Fingerprint(sig.PublicKey())
		// check: SignatureInvalid: an older signature by someone else may be of other bytes
		if s.others == onlyAdd {
			e := decision.From(err)
			if !strings.Contains(e.What, name) {
				e.What = fmt.Sprintf("the signature by %s: %s", name, e.What)
			}
			return nil, e.Try(next)
		}
		s.c.say("note", "%s: %s: the signature by %s no longer covers the script, dropped", s.subject, phase, name)
	}
	return kept, nil
}

func (s *signing) holds(key ssh.PublicKey) bool {
	return slices.ContainsFunc(s.keys, func(k ssh.Signer) bool { return quorum.Same(sshsig.CertifiedKey(k.PublicKey()), key) })
}

// withOwn puts a signature in the place of an older one by the same key, or behind the others; but
// before those of security keys, since karpenter-provider-ssh reads the first and cannot verify theirs.
func withOwn(all []string, own string, key ssh.PublicKey) ([]string, error) {
	at := len(all)
	for i, text := range all {
		old, err := sshsig.ParseAllWithCertificates([]byte(text))
		if err != nil {
			return nil, err
		}
		if quorum.Same(old[0].PublicKey(), key) {
			all[i] = own
			return all, nil
		}
		if i < at && sshsig.IsSecurityKey(old[0].PublicKey()) && !sshsig.IsSecurityKey(key) {
			at = i
		}
	}
	return slices.Insert(all, at, own), nil
}
