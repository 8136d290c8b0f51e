package statement

import (
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Namespace is the SSHSIG namespace of statements and root links.
const Namespace = "hostwarrant-statement"

// MaxBytes bounds a statement; the host's envelope takes no more (docs/spec/envelope.md).
const MaxBytes = 65536

// Kind says what a statement changes.
type Kind string

// The kinds, in the order of docs/spec/statement.md.
const (
	KindRoots   Kind = "roots"
	KindSigners Kind = "signers"
	KindRevoke  Kind = "revoke"
	KindFloor   Kind = "floor"
	KindReset   Kind = "reset"
)

// Kinds lists them.
func Kinds() []Kind { return []Kind{KindRoots, KindSigners, KindRevoke, KindFloor, KindReset} }

// Statement is a text that says one thing. Exactly the body of its Kind is set.
type Statement struct {
	Kind   Kind
	Serial int64
	// Issued is in seconds since 1970, UTC.
	Issued int64
	// Cluster is the id of the one cluster it is for, or "".
	Cluster string
	// Targets are "any" alone, "class LABEL" or "host SHA256:…"; they narrow Cluster down.
	Targets []string

	Roots   *Roots
	Signers *Signers
	Revoke  []string // fingerprints, ascending
	Floors  []Floor  // ascending by profile
	Reset   *Reset
}

// Roots is a generation of root keys; its version is the statement's serial.
type Roots struct {
	Threshold int
	Keys      []ssh.PublicKey
}

// Signers is the whole of a host's allowed_signers and what goes with it.
type Signers struct {
	// Expires is in seconds since 1970: from then on the host trusts no signer.
	Expires int64
	// MaxValidityDays bounds not-after of a warrant.
	MaxValidityDays int
	// Thresholds are those of install, join, leave and uninstall.
	Thresholds [4]int
	// Lines are those of allowed_signers (docs/spec/allowed-signers.md).
	Lines []string
}

// Floor is the lowest serial that a host takes of a profile, or of those with a prefix.
type Floor struct {
	Profile string
	Serial  int64
}

// Reset sets the mark of one profile, once.
type Reset struct {
	Profile string
	Mark    int64
	// SHA256 are the digests of the scripts at that serial, of install, join, leave and
	// uninstall; "" for a phase that is left open.
	SHA256 [4]string
}

func rejected(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.StatementRejected, format, args...)
}
