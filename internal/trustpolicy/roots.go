package trustpolicy

import (
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// maxRoots bounds the anchor; the root statement's 16 signature blocks set the same limit.
const maxRoots = 16

// Roots are the keys that sign trust policies, Threshold of them together.
type Roots struct {
	Version   int
	Threshold int
	Keys      []ssh.PublicKey
}

// ParseRoots reads the anchor's roots file: one OpenSSH public key a line, with
// blank lines and lines that start with "#" between them. Such a plain list is
// version 1 and wants every key. A key listed twice counts once. The error
// carries PolicyMalformed or KeyTypeRefused.
func ParseRoots(text []byte) (*Roots, error) {
	roots := &Roots{Version: 1}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, err := sshsig.ParsePublicKey(line)
		if err != nil {
			e := decision.From(err)
			return nil, malformed("root key on line %d: %s", i+1, e.What).Try("list one OpenSSH public key a line")
		}
		// check: PolicyUnsigned: one key listed twice must not make half the keys enough
		if holds(roots.Keys, key) {
			continue
		}
		roots.Keys = append(roots.Keys, key)
	}
	// check: PolicyMalformed: no roots would mean that no signature is needed
	if len(roots.Keys) == 0 || len(roots.Keys) > maxRoots {
		return nil, malformed("the roots hold %d keys, not 1 to %d", len(roots.Keys), maxRoots)
	}
	roots.Threshold = len(roots.Keys)
	return roots, nil
}

// holds reports whether the key itself is among keys; comments and spellings do not matter.
func holds(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return sameKey(k, key) })
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.PolicyMalformed, format, args...)
}
