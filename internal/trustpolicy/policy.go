package trustpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// Mode says what admission answers for an object that does not verify. It
// changes nothing else: relay, host and every report decide as enforce.
type Mode string

// The modes.
const (
	Enforce Mode = "enforce"
	Warn    Mode = "warn"
)

// Policy is a trust policy that the roots signed. It comes from Verify, or, good
// for its version alone, from Authenticate, or, good for nothing but to be shown,
// from ReadUnverified.
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
	// Floors are the lowest serials by profile or prefix with "*"; see Floor.
	Floors    map[string]int64
	Unguarded []Unguarded
	Resets    []Reset
	Waivers   []Waiver

	// What follows speaks of fragments and rules. A kind whose classes are not given is not judged.
	FragmentClasses        map[string]FragmentClass
	RuleClasses            map[string]RuleClass
	BindingClasses         map[string]BindingClass
	Learners               []string
	Bundles                map[string]Bundle
	RevokedFragmentSigners []string

	mode      Mode
	warnUntil time.Time
	revoked   []string
	// generations are the roots from the anchor to those that signed; links are the
	// statements that led there.
	generations []*Roots
	links       []*statement.Statement
}

// Mode is the mode at now: "warn" turns into "enforce" by itself at warnUntil.
func (p *Policy) Mode(now time.Time) Mode {
	if p.mode == Warn && now.Before(p.warnUntil) {
		return Warn
	}
	return Enforce
}

// WarnUntil is when mode warn ends; the zero time in mode enforce.
func (p *Policy) WarnUntil() time.Time { return p.warnUntil }

// Expired reports whether the policy no longer grants anything at now.
func (p *Policy) Expired(now time.Time) bool { return !now.Before(p.Expires) }

// Digest is the identity of a document's bytes.
func Digest(document []byte) string {
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}
