package trustpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// AnyCluster must be written out: a policy for every cluster can be replayed in every cluster.
const AnyCluster = "any"

// Mode says what admission answers for an object that does not verify. It
// changes nothing else: relay, host and every report decide as enforce.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"
)

// Policy is a trust policy that the roots signed. It comes from Verify, or, good
// for its version alone, from Authenticate.
type Policy struct {
	Version     int
	RootVersion int
	Issued      time.Time
	Expires     time.Time
	// Digest is "sha256:" and the hex digest of the document's bytes.
	Digest         string
	RequireWarrant bool
	MaxValidity    time.Duration
	Hosts          Hosts
	Clusters       map[string]Cluster
	Signers        []Signer
	Thresholds     map[script.Phase]int

	mode      Mode
	warnUntil time.Time
	revoked   []string
}

// Signer is a key that may vouch for phase scripts, within its scope.
type Signer struct {
	Name string
	Key  ssh.PublicKey
	// Line is the key as an OpenSSH public key line without a comment.
	Line string
	// ValidBefore is the zero time where the policy gives none.
	ValidBefore time.Time
	// Profiles are names or prefixes that end in "*"; empty means every profile.
	Profiles []string
	// Phases is empty for every phase.
	Phases        []script.Phase
	CertAuthority bool
	Targets       []string
}

// Mode is the mode at now: "warn" turns into "enforce" by itself at warnUntil.
func (p *Policy) Mode(now time.Time) Mode {
	if p.mode == Warn && now.Before(p.warnUntil) {
		return Warn
	}
	return Enforce
}

// Expired reports whether the policy no longer grants anything at now.
func (p *Policy) Expired(now time.Time) bool { return !now.Before(p.Expires) }

// Revoked reports whether the policy revokes the key.
func (p *Policy) Revoked(key ssh.PublicKey) bool {
	return slices.Contains(p.revoked, sshsig.Fingerprint(key))
}

// SignersOf returns the entries of the key; there may be several with different scopes.
func (p *Policy) SignersOf(key ssh.PublicKey) []Signer {
	return slices.DeleteFunc(slices.Clone(p.Signers), func(s Signer) bool { return !sameKey(s.Key, key) })
}

// Covers reports whether the signer's scope holds the phase of the profile.
func (s Signer) Covers(profile string, phase script.Phase) bool {
	inProfiles := len(s.Profiles) == 0 || slices.ContainsFunc(s.Profiles, func(pattern string) bool { return matches(pattern, profile) })
	inPhases := len(s.Phases) == 0 || slices.Contains(s.Phases, phase)
	return inProfiles && inPhases
}

// TrustedSigners are the public key lines that may stand in
// SSHHost.spec.trustedSigners: every key that is not revoked, once, in order.
func (p *Policy) TrustedSigners() []string {
	var lines []string
	for _, s := range p.Signers {
		if !p.Revoked(s.Key) && !slices.Contains(lines, s.Line) {
			lines = append(lines, s.Line)
		}
	}
	return lines
}

// FillSigners are the TrustedSigners whose term has not ended at now: what is
// filled in anew must not be a key that already vouches for nothing.
func (p *Policy) FillSigners(now time.Time) []string {
	var lines []string
	for _, line := range p.TrustedSigners() {
		inTerm := func(s Signer) bool {
			return s.Line == line && (s.ValidBefore.IsZero() || now.Before(s.ValidBefore))
		}
		if slices.ContainsFunc(p.Signers, inTerm) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Digest is the identity of a document's bytes.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}
