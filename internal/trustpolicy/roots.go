package trustpolicy

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// maxRoots bounds the anchor; the root statement's 16 signature blocks set the same limit.
const maxRoots = 16

// Roots are the keys that sign trust policies, Threshold of them together.
type Roots struct {
	Version   int
	Threshold int
	Keys      []ssh.PublicKey
	// digest is that of the roots statement they come from, "" for a plain list.
	digest string
}

// Digest is "sha256:" and the hex digest of the roots statement they come from, and
// "" for a plain list.
func (r *Roots) Digest() string { return r.digest }

// ParseRoots reads the anchor's roots file: a roots statement of any version, or a
// plain list, which is version 1 and wants every key. A list holds one OpenSSH
// public key a line, with blank lines and lines that start with "#" between them,
// or PEM public keys. A key listed twice counts once. Nothing is verified: the
// anchor is trusted because of where it comes from. The error carries
// PolicyMalformed.
func ParseRoots(text []byte) (*Roots, error) {
	if statement.Is(text) {
		return rootsStatement(text)
	}
	keys, err := listedKeys(text)
	if err != nil {
		return nil, err
	}
	roots := &Roots{Version: 1}
	for _, key := range keys {
		// check: PolicyUnsigned: one key listed twice must not make half the keys enough
		if quorum.Holds(roots.Keys, key) {
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

func rootsStatement(text []byte) (*Roots, error) {
	s, err := statement.Parse(text)
	if err != nil {
		return nil, malformed("roots: %s", decision.From(err).What)
	}
	// check: PolicyMalformed: a statement of another kind names no roots
	if s.Kind != statement.KindRoots {
		return nil, malformed("roots: a statement of kind %s names no roots", s.Kind)
	}
	return generation(text, s), nil
}

// generation gives the roots that a roots statement names.
func generation(text []byte, s *statement.Statement) *Roots {
	return &Roots{Version: int(s.Serial), Threshold: s.Roots.Threshold, Keys: s.Roots.Keys, digest: Digest(text)}
}

// listedKeys reads OpenSSH lines or PEM blocks.
func listedKeys(text []byte) ([]ssh.PublicKey, error) {
	if strings.HasPrefix(strings.TrimSpace(string(text)), "-----BEGIN ") {
		return pemKeys(text)
	}
	var keys []ssh.PublicKey
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
		keys = append(keys, key)
	}
	return keys, nil
}

func pemKeys(text []byte) ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for rest := text; strings.TrimSpace(string(rest)) != ""; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		// check: PolicyMalformed: what is not a key must not be skipped, nor a private key taken for one
		if block == nil || block.Type != "PUBLIC KEY" {
			return nil, malformed("the roots hold something beside PEM public keys")
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, malformed("root key %d is not a public key", len(keys)+1)
		}
		key, err := ssh.NewPublicKey(public)
		if err != nil {
			return nil, malformed("root key %d is of a type that SSH does not know", len(keys)+1)
		}
		if err := sshsig.CheckKey(key); err != nil {
			return nil, malformed("root key %d: %s", len(keys)+1, decision.From(err).What)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Same reports whether two are one generation: the same document, or, where one of
// them is a plain list, the same version, keys and threshold.
func (r *Roots) Same(o *Roots) bool { return r.Version == o.Version && r.same(o) }

// same reports whether two roots of one version are one document; a plain list has
// no bytes of its own, and is compared by what it says.
func (r *Roots) same(o *Roots) bool {
	if r.digest != "" && o.digest != "" {
		return r.digest == o.digest
	}
	return r.Threshold == o.Threshold && len(r.Keys) == len(o.Keys) && quorum.Count(r.Keys, o.Keys) == len(o.Keys)
}

func malformed(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.PolicyMalformed, format, args...).Try("hostwarrant help trust-policy tells the format; a mended document is signed again")
}
