package inforce

import (
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Anchor is what the operator installed: which root keys to believe, and which cluster this is.
type Anchor struct {
	verify.Anchor
	// Text is the roots file, by which anchors are compared.
	Text []byte
}

// Digest identifies the anchor's roots.
func (a Anchor) Digest() string { return trustpolicy.Digest(a.Text) }

// ParseAnchor reads the two files of an anchor. The error carries PolicyMalformed.
func ParseAnchor(roots, clusterID []byte) (Anchor, error) {
	parsed, err := verify.ParseAnchor(roots, clusterID)
	return Anchor{Anchor: parsed, Text: roots}, err
}
