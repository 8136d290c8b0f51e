package verify

import (
	"fmt"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// JoinProfile judges a whole SSHJoinProfile: every phase that has a script.
func JoinProfile(s Snapshot, p *object.JoinProfile) decision.Decision {
	d := decision.Admit(p.Kind, p.Name, fmt.Sprintf("%d phases vouched for", len(p.Phases())))
	read := readWarrants(p)
	for _, phase := range p.Phases() {
		one := judged(s, p, phase, read)
		if !one.Allowed() {
			return one
		}
		d.Warnings = append(d.Warnings, one.Warnings...)
	}
	return d
}

// Phase judges one phase of an SSHJoinProfile, as the relay does before it runs it.
func Phase(s Snapshot, p *object.JoinProfile, phase script.Phase) decision.Decision {
	return judged(s, p, phase, readWarrants(p))
}

// warrants are those of a profile, or why they cannot be believed.
type warrants struct {
	of  map[script.Phase]*warrant.Warrant
	err error
}

func readWarrants(p *object.JoinProfile) warrants {
	of, err := Warrants(p)
	return warrants{of, err}
}

func judged(s Snapshot, p *object.JoinProfile, phase script.Phase, read warrants) decision.Decision {
	warnings, err := judgePhase(s, p, phase, read)
	if err != nil {
		e := decision.From(err)
		if e.Where == "" {
			e = e.At(string(phase))
		}
		return e.Denied(p.Kind, p.Name)
	}
	d := decision.Admit(p.Kind, p.Name, "vouched for")
	d.Where, d.Warnings = string(phase), warnings
	return d
}

func judgePhase(s Snapshot, p *object.JoinProfile, phase script.Phase, read warrants) (warnings []string, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	text := []byte(p.Scripts[phase])
	// check: Malformed: a phase that does not exist must not be taken for an empty script
	if len(text) == 0 {
		return nil, decision.Errorf(decision.Malformed, "the profile has no such script")
	}
	if err := script.Check(text); err != nil {
		return nil, err
	}
	// check: Unsigned: whoever can write the object must not be able to run code as root
	if p.Signatures[phase] == "" {
		return nil, decision.Errorf(decision.Unsigned, "the script has no signature").Try("hostwarrant sign -i FILE --key KEY")
	}
	signatures, err := sshsig.ParseAllWithCertificates([]byte(p.Signatures[phase]))
	if err != nil {
		return nil, decision.From(err).Try("sign again: hostwarrant sign -i FILE --key KEY")
	}
	w := read.of[phase]
	if err := vouched(s, claim{p, phase, targetsOf(w)}, signatures); err != nil {
		return nil, err
	}
	// As on the host, what is wrong with a signature is answered before what is wrong with a warrant.
	if read.err != nil {
		return nil, read.err
	}
	if err := warranted(s, p.Name, w); err != nil {
		return nil, err
	}
	return advice(s, phase, signatures[0], w), nil
}

func targetsOf(w *warrant.Warrant) []string {
	if w == nil {
		return nil
	}
	var words []string
	for _, target := range w.Targets {
		words = append(words, target.String())
	}
	return words
}

// advice says what works here and not with karpenter-provider-ssh, which reads
// the first signature alone, verifies plain keys alone, and knows no scope.
func advice(s Snapshot, phase script.Phase, first *sshsig.Signature, w *warrant.Warrant) []string {
	var warnings []string
	say := func(format string, args ...any) {
		warnings = append(warnings, string(phase)+": "+fmt.Sprintf(format, args...))
	}
	key := first.PublicKey()
	switch {
	case sshsig.IsSecurityKey(key):
		say("the first signature is by a security key, which karpenter-provider-ssh cannot verify; put another signature first")
	case first.Certificate() != nil:
		say("the first signature is by a certificate, which karpenter-provider-ssh cannot verify; put another signature first")
	case len(s.Policy.SignersOf(key)) == 0:
		say("the first signature is by %s, which the policy does not name: karpenter-provider-ssh, which reads no other, refuses it", sshsig.Fingerprint(key))
	}
	if w == nil && (s.Policy.Thresholds[phase] > 1 || slices.ContainsFunc(s.Policy.SignersOf(key), narrow)) {
		say("without a warrant scope and threshold hold here and at the relay only; a host takes the script from a signer for everything, or refuses it")
	}
	return warnings
}

// narrow tells a signer who may not vouch for everything.
func narrow(s trustpolicy.Signer) bool { return len(s.Profiles)+len(s.Phases)+len(s.Targets) > 0 }
