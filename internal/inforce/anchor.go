package inforce

import (
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// Files of an anchor's directory, and keys of the ConfigMap that is mounted there.
const (
	RootsFile     = "roots"
	ClusterIDFile = "cluster-id"
)

// MaxAnchorFile bounds what is read of each, in bytes: 16 root keys of RSA 16384 are 45 KiB.
const MaxAnchorFile = 64 << 10

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
