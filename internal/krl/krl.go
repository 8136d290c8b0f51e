package krl

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// MaxSize bounds a list: 1 MiB holds 29000 fingerprints (docs/spec/allowed-signers.md).
const MaxSize = 1 << 20

// anyAuthority stands for certificates of any CA.
const anyAuthority = ""

// List is a set of revoked keys and certificates. The zero List revokes everything.
type List struct {
	read    bool
	keys    map[string]bool   // by the key's wire form
	sha1    map[[20]byte]bool // by the hash of the wire form
	sha256  map[[32]byte]bool
	certs   map[string]*certificates // by the wire form of the CA's key, or anyAuthority
	summary Summary
}

// Summary is what a list says of itself; nothing of it is signed.
type Summary struct {
	Serial  uint64 // "KRL version", set by -z of ssh-keygen; 0 in a plain list
	Date    uint64 // seconds since 1970; 0 in a plain list
	Comment string
}

// Summary returns what the list says of itself.
func (l *List) Summary() Summary { return l.summary }

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...)
}

// Parse reads a KRL, or a plain list of public keys. Which of the two it is,
// the first bytes say, as for ssh-keygen. An empty list revokes nothing. The
// error carries TooLarge or Malformed.
func Parse(data []byte) (*List, error) {
	// check: TooLarge: work before anything is decided must be bounded
	if len(data) > MaxSize {
		return nil, decision.Errorf(decision.TooLarge, "revocation list is %d bytes long, more than %d", len(data), MaxSize)
	}
	l := &List{
		keys: map[string]bool{}, sha1: map[[20]byte]bool{}, sha256: map[[32]byte]bool{}, certs: map[string]*certificates{},
	}
	read := l.plain
	if bytes.HasPrefix(data, []byte(magic)) {
		read = l.binary
	}
	if err := read(data); err != nil {
		return nil, err
	}
	l.read = true
	return l, nil
}

// Revoked reports whether the list revokes the key. A certificate is revoked by
// its key, by its authority, and by serial number or key id among those of its
// authority or of any. What is not there is revoked.
func (l *List) Revoked(key ssh.PublicKey) bool {
	// check: SignerRevoked: a list that was never read must not pass for an empty one
	if l == nil || !l.read || key == nil {
		return true
	}
	c, ok := key.(*ssh.Certificate)
	if !ok {
		return l.revokedKey(key)
	}
	// check: SignerRevoked: the key of a certificate, or the authority behind it
	if l.revokedKey(c.Key) || l.revokedKey(c.SignatureKey) {
		return true
	}
	return l.certs[anyAuthority].revoked(c) || l.certs[string(c.SignatureKey.Marshal())].revoked(c)
}

func (l *List) revokedKey(key ssh.PublicKey) bool {
	if key == nil {
		return true
	}
	blob := key.Marshal()
	// SHA-1 only as PROTOCOL.krl knows it: what it matches wrongly is refused, never accepted.
	return l.keys[string(blob)] || l.sha1[sha1.Sum(blob)] || l.sha256[sha256.Sum256(blob)]
}
