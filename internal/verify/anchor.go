package verify

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Anchor is what a reader was given out of band: the roots and its cluster's id.
type Anchor struct {
	Roots     *trustpolicy.Roots
	ClusterID string
}

// ParseAnchor reads the anchor's two files, "roots" and "cluster-id". The latter
// may end in one newline, as echo writes it. The error carries PolicyMalformed.
func ParseAnchor(roots, clusterID []byte) (Anchor, error) {
	keys, err := trustpolicy.ParseRoots(roots)
	if err != nil {
		return Anchor{}, decision.From(err).At("roots")
	}
	id := strings.TrimSuffix(string(clusterID), "\n")
	// check: PolicyMalformed: an id that is read in two ways matches another cluster's policy
	if !trustpolicy.ValidClusterID(id) {
		return Anchor{}, decision.Errorf(decision.PolicyMalformed, "%.80q is no cluster id ([a-z0-9-], up to 63)", id).At("cluster-id")
	}
	return Anchor{Roots: keys, ClusterID: id}, nil
}
