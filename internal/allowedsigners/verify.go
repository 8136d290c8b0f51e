package allowedsigners

import (
	"bytes"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// Revocations says what is revoked: the key of a signature, or its certificate.
// A krl.List is one.
type Revocations interface {
	Revoked(key ssh.PublicKey) bool
}

// Verify says whether sig is a signature of message in namespace by somebody
// whom the list knows under identity at the time now. It asks in the order of
// ssh-keygen: the signature itself, then revoked (nil: nothing is asked), then
// the list, of which one line that allows is enough.
//
// The error carries the Reasons of sshsig's Verify and CheckCertificate,
// SignerRevoked, SignerUnknown (no line has the key), SignerScope (none that has
// it allows this identity in this namespace), NotYetValid or Expired; of several
// lines with the key, that of the one which comes nearest.
func (l *List) Verify(identity, namespace string, sig *sshsig.Signature, message []byte, revoked Revocations, now time.Time) error {
	if err := sig.Verify(namespace, message); err != nil {
		return err
	}
	var signer ssh.PublicKey = sig.PublicKey()
	if c := sig.Certificate(); c != nil {
		signer = c
	}
	// check: SignerRevoked: a stolen key is still on the list of hosts that were not reached
	if revoked != nil && revoked.Revoked(signer) {
		return decision.Errorf(decision.SignerRevoked, "the key %s is revoked", sshsig.Fingerprint(sig.PublicKey()))
	}
	return l.allows(identity, namespace, sig, now)
}

func (l *List) allows(identity, namespace string, sig *sshsig.Signature, now time.Time) error {
	// check: SignerUnknown: ssh-keygen takes no empty identity, which a pattern * would match
	if identity == "" {
		return decision.Errorf(decision.SignerUnknown, "the identity is empty")
	}
	nearest := decision.Errorf(decision.SignerUnknown, "no line has the key %s", sshsig.Fingerprint(sig.PublicKey()))
	if c := sig.Certificate(); c != nil {
		nearest = decision.Errorf(decision.SignerUnknown, "no cert-authority line has the key %s that certifies the signer", sshsig.Fingerprint(c.SignatureKey))
	}
	for _, e := range l.entries {
		if !e.has(sig) {
			continue
		}
		err := e.allows(identity, namespace, sig, now)
		if err == nil {
			return nil
		}
		if miss := decision.From(err); distance(miss) < distance(nearest) {
			nearest = miss
		}
	}
	return nearest
}

// distance orders misses: the nearer a line came, the more its reason helps.
func distance(e *decision.Error) int {
	switch e.Reason {
	case decision.SignerUnknown:
		return 2
	case decision.SignerScope:
		return 1
	default:
		return 0
	}
}

// has reports whether the line is about the signer: by the raw key, or as the
// authority of a certificate. A certificate is no raw key, as for ssh-keygen.
func (e entry) has(sig *sshsig.Signature) bool {
	if c := sig.Certificate(); c != nil {
		return e.options.authority && sameKey(e.key, c.SignatureKey)
	}
	return !e.options.authority && sameKey(e.key, sig.PublicKey())
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

func (e entry) allows(identity, namespace string, sig *sshsig.Signature, now time.Time) error {
	// check: SignerScope: a key listed for one name must not sign for another
	if !e.principals.match(identity) {
		return decision.Errorf(decision.SignerScope, "line %d has the key, but not for %.80q", e.line, identity)
	}
	if c := sig.Certificate(); c != nil {
		if err := e.allowsCertificate(c, identity, now); err != nil {
			return err
		}
	}
	// check: SignerScope: a key listed for one use must not serve another
	if e.options.limited && !e.options.namespaces.match(namespace) {
		return decision.Errorf(decision.SignerScope, "line %d has the key, but not for namespace %.80q", e.line, namespace)
	}
	return e.allowsTime(now)
}

func (e entry) allowsCertificate(c *ssh.Certificate, identity string, now time.Time) error {
	if err := sshsig.CheckCertificate(c, now); err != nil {
		return err
	}
	// check: SignerScope: a certificate names its principals literally; a pattern in it is no pattern
	if !slices.Contains(c.ValidPrincipals, identity) {
		return decision.Errorf(decision.SignerScope, "line %d has the authority, but the certificate is not for %.80q", e.line, identity)
	}
	return nil
}

// allowsTime takes both ends as inside the term, as ssh-keygen does, which counts
// in whole seconds.
func (e entry) allowsTime(now time.Time) error {
	seconds := now.Unix()
	// check: NotYetValid: the line does not hold yet
	if after := e.options.validAfter; !after.IsZero() && seconds < after.Unix() {
		return decision.Errorf(decision.NotYetValid, "line %d has the key from %s on", e.line, after.Format(time.RFC3339))
	}
	// check: Expired: the line does not hold any more
	if before := e.options.validBefore; !before.IsZero() && seconds > before.Unix() {
		return decision.Errorf(decision.Expired, "line %d has the key until %s", e.line, before.Format(time.RFC3339))
	}
	return nil
}
