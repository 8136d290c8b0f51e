package verify

import (
	"slices"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// vouched wants signatures over the phase by as many distinct keys as the
// policy's threshold. As on the host, one that is not for phase scripts at all
// refuses the phase, and one that merely does not count does no harm; if too few
// count, the first fault is the answer.
func vouched(s Snapshot, p *object.JoinProfile, phase script.Phase, signatures []*sshsig.Signature) error {
	good := map[string]bool{}
	var fault error
	for _, signature := range signatures {
		// check: WrongNamespace,TouchMissing: the host's shim would refuse it, so it must not be admitted
		if err := signature.CheckPurpose(script.Namespace); err != nil {
			return decision.From(err).Try("sign again: hostwarrant sign -i FILE --key KEY")
		}
		if err := counts(s, p, phase, signature); err != nil {
			if fault == nil {
				fault = err
			}
			continue
		}
		good[string(signature.PublicKey().Marshal())] = true
	}
	need := s.Policy.Thresholds[phase]
	if len(good) == 0 && fault != nil {
		return fault
	}
	// check: ThresholdNotMet: one stolen key, or one key used twice, must not be enough where two are asked for
	if need < 1 || len(good) < need {
		return decision.Errorf(decision.ThresholdNotMet, "%d of %d needed signers vouched for the script", len(good), need).
			Try("hostwarrant sign -i --add FILE --key KEY, by another signer")
	}
	return nil
}

// counts says whether one signature is by a key that may vouch for this phase,
// now, over exactly these bytes.
func counts(s Snapshot, p *object.JoinProfile, phase script.Phase, signature *sshsig.Signature) error {
	key := signature.PublicKey()
	name := sshsig.Fingerprint(key)
	// check: SignerRevoked: a stolen key
	if s.Policy.Revoked(key) {
		return decision.Errorf(decision.SignerRevoked, "the policy revokes the signer %s", name).Try("sign with another key")
	}
	entries := s.Policy.SignersOf(key)
	// check: SignerUnknown: anyone can make a key
	if len(entries) == 0 {
		return decision.Errorf(decision.SignerUnknown, "the policy does not name the signer %s", name).
			Try("sign with a key under joinProfiles.signers, or add this one there")
	}
	if err := inScope(s.Now, entries, p.Name, phase, name); err != nil {
		return err
	}
	return covers(signature, p, phase)
}

// inScope wants an entry of the key that covers the phase and has not expired.
func inScope(now time.Time, entries []trustpolicy.Signer, profile string, phase script.Phase, name string) error {
	covering := slices.DeleteFunc(entries, func(e trustpolicy.Signer) bool { return !e.Covers(profile, phase) })
	// check: SignerScope: one team's key must not vouch for another team's hosts
	if len(covering) == 0 {
		return decision.Errorf(decision.SignerScope, "the signer %s may not vouch for %s of this profile", name, phase).
			Try("sign with a key whose profiles and phases cover it")
	}
	inTerm := func(e trustpolicy.Signer) bool { return e.ValidBefore.IsZero() || now.Before(e.ValidBefore) }
	// check: Expired: a signer's term bounds what a key that was forgotten can do
	if !slices.ContainsFunc(covering, inTerm) {
		return decision.Errorf(decision.Expired, "the signer %s was valid before %s", name, covering[0].ValidBefore.Format(time.RFC3339)).
			Try("sign with a key that is in its term")
	}
	return nil
}

// covers verifies the signature over the script.
func covers(signature *sshsig.Signature, p *object.JoinProfile, phase script.Phase) error {
	err := signature.Verify(script.Namespace, []byte(p.Scripts[phase]))
	// check: BytesChanged,NewlineChanged: only the very bytes that were signed
	if err != nil {
		return mismatch(signature, p, phase)
	}
	return nil
}

// mismatch words what became of the bytes that the signature does not match.
func mismatch(signature *sshsig.Signature, p *object.JoinProfile, phase script.Phase) error {
	covered := func(text []byte) bool { return signature.Verify(script.Namespace, text) == nil }
	name := sshsig.Fingerprint(signature.PublicKey())
	if change := script.NewlineChange([]byte(p.Scripts[phase]), covered); change != "" {
		return decision.Errorf(decision.NewlineChanged, "the bytes differ from those %s signed only by newlines: %s", name, change).
			Try("keep the signed bytes: use a | block scalar and LF line ends, or sign again")
	}
	for _, other := range p.Phases() {
		if other != phase && covered([]byte(p.Scripts[other])) {
			return decision.Errorf(decision.BytesChanged, "this is the signature of the %s script", other).
				Try("put each signature under its own phase")
		}
	}
	return decision.Errorf(decision.BytesChanged, "these are not the bytes that %s signed", name).
		Try("review the change, then: hostwarrant sign -i FILE --key KEY")
}
