package inforce

import (
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Anchor is what the operator installed: which root keys to believe, and which cluster this is.
type Anchor struct {
	verify.Anchor
	// Text is the roots file, and Digest is its digest, by which anchors are compared.
	Text   []byte
	Digest string
}

// ParseAnchor reads the two files of an anchor. The error carries PolicyMalformed.
func ParseAnchor(roots, clusterID []byte) (Anchor, error) {
	parsed, err := verify.ParseAnchor(roots, clusterID)
	return Anchor{Anchor: parsed, Text: roots, Digest: trustpolicy.Digest(roots)}, err
}
