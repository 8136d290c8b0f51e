package verify

import (
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// JoinProfile judges a whole SSHJoinProfile: every phase that has a script.
func JoinProfile(s Snapshot, p *object.JoinProfile) decision.Decision {
	return wholeProfile(s, p, nil)
}

// wholeProfile is JoinProfile of a version that takes the place of old, where there is one.
func wholeProfile(s Snapshot, p, old *object.JoinProfile) decision.Decision {
	d := judged(s, p, p.Phases(), fmt.Sprintf("%d phases vouched for", len(p.Phases())), "")
	if !d.Allowed() {
		return d
	}
	if err := follows(s, p, old); err != nil {
		return decision.From(err).Denied(p.Kind, p.Name)
	}
	return d
}

// Phase judges one phase of an SSHJoinProfile, as the relay does before it runs
// it. What the warrants say of each other is judged over all phases.
func Phase(s Snapshot, p *object.JoinProfile, phase script.Phase) decision.Decision {
	d := judged(s, p, []script.Phase{phase}, "vouched for", string(phase))
	if !d.Allowed() {
		return d
	}
	if err := follows(s, p, nil); err != nil {
		return decision.From(err).Denied(p.Kind, p.Name)
	}
	return d
}

// judged asks of each phase who signed it, then what its warrant says: as on the
// host, what is wrong with a signature is answered first.
func judged(s Snapshot, p *object.JoinProfile, phases []script.Phase, what, where string) decision.Decision {
	deny := func(err error, phase script.Phase) decision.Decision {
		e := decision.From(err)
		if e.Where == "" {
			e = e.At(string(phase))
		}
		return e.Denied(p.Kind, p.Name)
	}
	warrants, warrantsErr := Warrants(p)
	d := decision.Admit(p.Kind, p.Name, what)
	d.Where = where
	for _, phase := range phases {
		first, keys, err := signedPhase(s, p, phase, warrants[phase])
		if err != nil {
			return deny(err, phase)
		}
		d.Warnings = append(d.Warnings, advice(s, phase, first, warrants[phase])...)
		d.Keys = append(d.Keys, keys...)
	}
	slices.Sort(d.Keys)
	d.Keys = slices.Compact(d.Keys)
	// check: WarrantMalformed,WarrantMissing,WarrantMismatch: limits that contradict each other are no limits
	if warrantsErr != nil {
		return deny(warrantsErr, "")
	}
	for _, phase := range phases {
		if err := warranted(s, p.Name, warrants[phase]); err != nil {
			return deny(err, phase)
		}
	}
	return d
}

// signedPhase wants enough good signatures over a script, and gives the first
// and the fingerprints of those that count.
func signedPhase(s Snapshot, p *object.JoinProfile, phase script.Phase, w *warrant.Warrant) (*sshsig.Signature, []string, error) {
	if err := s.usable(); err != nil {
		return nil, nil, err
	}
	text := []byte(p.Scripts[phase])
	// check: Malformed: a phase that does not exist must not be taken for an empty script
	if len(text) == 0 {
		return nil, nil, decision.Errorf(decision.Malformed, "the profile has no such script")
	}
	if err := script.Check(text); err != nil {
		return nil, nil, err
	}
	// check: Unsigned: whoever can write the object must not be able to run code as root
	if p.Signatures[phase] == "" {
		return nil, nil, decision.Errorf(decision.Unsigned, "the script has no signature").Try("hostwarrant sign -i FILE --key KEY")
	}
	signatures, err := sshsig.ParseAllWithCertificates([]byte(p.Signatures[phase]))
	if err != nil {
		return nil, nil, decision.From(err).Try("sign again: hostwarrant sign -i FILE --key KEY")
	}
	keys, err := vouched(s, claim{p, phase, targetsOf(w)}, signatures)
	return signatures[0], keys, err
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
	limited := s.Policy.Thresholds[phase] > 1 || slices.ContainsFunc(s.Policy.SignersOf(authorityOf(first)), trustpolicy.Signer.Scoped)
	switch {
	case limited && s.ForUpstreamShim:
		say("scope and threshold hold here and at the relay only: a host with karpenter-provider-ssh's shim takes the script, as any phase, from any one signer of its list")
	case limited && w == nil:
		say("without a warrant scope and threshold hold here and at the relay only; a host takes the script from a signer for everything, or refuses it")
	}
	return warnings
}

// authorityOf is the key that the policy names for a signature: the signer's, or that of who certified it.
func authorityOf(signature *sshsig.Signature) ssh.PublicKey {
	if certificate := signature.Certificate(); certificate != nil {
		return certificate.SignatureKey
	}
	return signature.PublicKey()
}
