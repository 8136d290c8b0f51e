package verify

import (
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// claim is a script that someone is to vouch for, and what its warrant says of
// where it may run.
type claim struct {
	profile *object.JoinProfile
	phase   script.Phase
	targets []string // nil where there is no warrant
}

// vouched wants signatures over the phase by as many distinct keys as the
// policy's threshold. As on the host, one that is not for phase scripts at all
// refuses the phase, and one that merely does not count does no harm; if too few
// count, the first fault is the answer. It gives the fingerprints of those that count.
func vouched(s Snapshot, c claim, signatures []*sshsig.Signature) ([]string, error) {
	var good []*sshsig.Signature
	var fault error
	for _, signature := range signatures {
		// check: WrongNamespace,TouchMissing: the host's shim would refuse it, so it must not be admitted
		if err := signature.CheckPurpose(script.Namespace); err != nil {
			return nil, decision.From(err).Try("sign again: hostwarrant sign -i FILE --key KEY")
		}
		if err := counts(s, c, signature); err != nil {
			if fault == nil {
				fault = worded(err, c, signature)
			}
			continue
		}
		good = append(good, signature)
	}
	need, have := s.Policy.Thresholds[c.phase], distinct(good)
	if have == 0 && fault != nil {
		return nil, fault
	}
	// check: ThresholdNotMet: one stolen key, or one key used twice, must not be enough where two are asked for
	if need < 1 || have < need {
		return nil, decision.Errorf(decision.ThresholdNotMet, "%d of %d needed signers vouched for the script", have, need).
			Try("hostwarrant sign -i --add FILE --key KEY, by another signer")
	}
	return fingerprints(good), nil
}

// fingerprints name the keys that signed, each once and ascending.
func fingerprints(signatures []*sshsig.Signature) []string {
	var all []string
	for _, signature := range signatures {
		all = append(all, sshsig.Fingerprint(signature.PublicKey()))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// distinct counts signers: a key once, however often and with whatever certificates it signed, and an
// authority once, since whoever holds it can certify as many keys as they like. Of several ways to
// count it takes the one that counts most, so that the order of blocks does not matter.
func distinct(signatures []*sshsig.Signature) int {
	seen := map[string]bool{}
	var pairs [][2]string // of a key and its authority
	for _, signature := range signatures {
		key, certificate := string(signature.PublicKey().Marshal()), signature.Certificate()
		if certificate == nil {
			seen[key] = true
			continue
		}
		pairs = append(pairs, [2]string{key, string(certificate.SignatureKey.Marshal())})
	}
	return len(seen) + disjoint(pairs, seen)
}

// disjoint is how many of the pairs, at most, share no key with each other or with those seen. There
// are no more than eight, one for each block.
func disjoint(pairs [][2]string, seen map[string]bool) int {
	if len(pairs) == 0 {
		return 0
	}
	most, first := disjoint(pairs[1:], seen), pairs[0]
	if seen[first[0]] || seen[first[1]] {
		return most
	}
	with := maps.Clone(seen)
	with[first[0]], with[first[1]] = true, true
	return max(most, 1+disjoint(pairs[1:], with))
}

// errBytes is a signature of other bytes. What became of them is asked only for
// the fault that is shown: each guess costs a verification.
var errBytes = decision.Errorf(decision.BytesChanged, "these are not the bytes that were signed")

func worded(err error, c claim, signature *sshsig.Signature) error {
	if errors.Is(err, errBytes) {
		return mismatch(signature, c.profile, c.phase)
	}
	return err
}

// counts says whether one signature is by a key that may vouch for this phase,
// now, over exactly these bytes.
func counts(s Snapshot, c claim, signature *sshsig.Signature) error {
	entries, name, err := known(s, c, signature)
	if err != nil {
		return err
	}
	if err := inScope(s.Now, entries, c, name); err != nil {
		return err
	}
	// check: BytesChanged,NewlineChanged: only the very bytes that were signed
	if err := signature.Verify(script.Namespace, []byte(c.profile.Scripts[c.phase])); err != nil {
		return errBytes
	}
	return nil
}

// known gives the policy's entries of the key that signed, or of the authority
// that certified it, and the name to call it by.
func known(s Snapshot, c claim, signature *sshsig.Signature) ([]trustpolicy.Signer, string, error) {
	key, authority, certificate := signature.PublicKey(), authorityOf(signature), signature.Certificate()
	name := sshsig.Fingerprint(key)
	// check: SignerRevoked: a stolen key, or one that a stolen authority certified
	if s.Policy.Revoked(key) || s.Policy.Revoked(authority) {
		return nil, name, decision.Errorf(decision.SignerRevoked, "the policy revokes the signer %s", name).Try("sign with another key")
	}
	entries := slices.DeleteFunc(s.Policy.SignersOf(authority), func(e trustpolicy.Signer) bool { return e.CertAuthority != (certificate != nil) })
	// check: SignerUnknown: anyone can make a key, or certify one
	if len(entries) == 0 {
		return nil, name, decision.Errorf(decision.SignerUnknown, "the policy does not name the signer %s", name).
			Try("sign with a key under joinProfiles.signers, or add this one there")
	}
	if certificate == nil {
		return entries, name, nil
	}
	return entries, name, certified(s.Now, c, certificate)
}

// certified judges the certificate of a signer: in itself, and for this phase of
// this profile by name.
func certified(now time.Time, c claim, certificate *ssh.Certificate) error {
	if err := sshsig.CheckCertificate(certificate, now); err != nil {
		return decision.From(err).Try("sign with a key whose certificate is in its term")
	}
	principal := string(c.phase) + "@" + c.profile.Name
	// check: SignerScope: a certificate for one profile must not vouch for another; a pattern in it is no pattern
	if !slices.Contains(certificate.ValidPrincipals, principal) {
		return decision.Errorf(decision.SignerScope, "the certificate %.60q does not name the principal %s", certificate.KeyId, principal).
			Try("certify the key with ssh-keygen -n " + principal)
	}
	return nil
}

// inScope wants an entry of the key that covers the phase and has not expired.
func inScope(now time.Time, entries []trustpolicy.Signer, c claim, name string) error {
	covering := slices.DeleteFunc(entries, func(e trustpolicy.Signer) bool { return !e.Covers(c.profile.Name, c.phase) })
	// check: SignerScope: one team's key must not vouch for another team's hosts
	if len(covering) == 0 {
		return decision.Errorf(decision.SignerScope, "the signer %s may not vouch for %s of this profile", name, c.phase).
			Try("sign with a key whose profiles and phases cover it")
	}
	covering = slices.DeleteFunc(covering, func(e trustpolicy.Signer) bool { return !e.CoversTargets(c.targets) })
	// check: SignerScope: a key for the test hosts must not vouch for the others, nor for a script that goes anywhere
	if len(covering) == 0 {
		return decision.Errorf(decision.SignerScope, "the signer %s may not vouch for these targets: %s", name, list(c.targets)).
			Try("sign with a key whose targets cover it, or narrow the warrant with --target")
	}
	inTerm := func(e trustpolicy.Signer) bool { return e.ValidBefore.IsZero() || now.Before(e.ValidBefore) }
	// check: Expired: a signer's term bounds what a key that was forgotten can do
	if !slices.ContainsFunc(covering, inTerm) {
		return decision.Errorf(decision.Expired, "the signer %s was valid before %s", name, covering[0].ValidBefore.Format(time.RFC3339)).
			Try("sign with a key that is in its term")
	}
	return nil
}

// mismatch words what became of the bytes that the signature does not match.
func mismatch(signature *sshsig.Signature, p *object.JoinProfile, phase script.Phase) error {
	covered := func(text []byte) bool { return signature.Verify(script.Namespace, text) == nil }
	name, text := sshsig.Fingerprint(signature.PublicKey()), []byte(p.Scripts[phase])
	if change := script.NewlineChange(text, covered); change != "" {
		return decision.Errorf(decision.NewlineChanged, "the bytes differ from those %s signed only by newlines: %s", name, change).
			Try("keep the signed bytes: use a | block scalar and LF line ends, or sign again")
	}
	for _, other := range p.Phases() {
		if other != phase && covered([]byte(p.Scripts[other])) {
			return decision.Errorf(decision.BytesChanged, "this is the signature of the %s script", other).
				Try("put each signature under its own phase")
		}
	}
	if change := script.SpaceChange(text, covered); change != "" {
		return decision.Errorf(decision.BytesChanged, "the bytes differ from those %s signed only by white space: %s", name, change).
			Try("keep the signed bytes: no editor or template may re-indent the block, or sign again")
	}
	return decision.Errorf(decision.BytesChanged, "these are not the bytes that %s signed", name).
		Try("review the change, then: hostwarrant sign -i FILE --key KEY")
}
