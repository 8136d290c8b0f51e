package verify

import (
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Anchor is what a reader was given out of band: the roots and its cluster's id.
type Anchor struct {
	Roots     *trustpolicy.Roots
	ClusterID string
	// ClusterUID is that of the namespace kube-system, "" where the reader cannot see it.
	ClusterUID string
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
	if err := rootsFor(roots, id); err != nil {
		return Anchor{}, err
	}
	return Anchor{Roots: keys, ClusterID: id}, nil
}

// rootsFor wants a roots statement to be for the whole of the cluster; a plain list
// says nothing of clusters.
func rootsFor(roots []byte, clusterID string) error {
	if !statement.Is(roots) {
		return nil
	}
	s, err := statement.Parse(roots)
	if err != nil {
		return decision.Errorf(decision.PolicyMalformed, "%s", decision.From(err).What).At("roots")
	}
	// check: PolicyMalformed: the roots of another cluster, mounted here by mistake, would decide here
	if !s.For(clusterID) {
		return decision.Errorf(decision.PolicyMalformed, "the roots statement is not for the whole of cluster %.80q", clusterID).
			At("roots").Try("give the roots statement of this cluster, or the cluster's right id")
	}
	return nil
}
