package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// Cluster is what a join script needs to know of the cluster. Empty values are
// sent as empty: a script that needs them must refuse to run without.
type Cluster struct {
	Endpoint string
	CA       []byte // PEM
}

// ClusterOf takes the endpoint from the policy, where it names exactly one for
// this cluster, and the CA that the relay itself trusts, where the policy lists
// its digest. Nothing else may tell a host which cluster to join.
func ClusterOf(p *trustpolicy.Policy, clusterID string, ownCA []byte) Cluster {
	if p == nil {
		return Cluster{}
	}
	entry, ok := p.Clusters[clusterID]
	if !ok {
		return Cluster{}
	}
	var c Cluster
	if len(entry.Endpoints) == 1 {
		c.Endpoint = entry.Endpoints[0]
	}
	sum := sha256.Sum256(ownCA)
	// check: ClusterRefused: a relay that was given a foreign CA sends hosts to a foreign API server
	if !slices.Contains(entry.CASHA256, hex.EncodeToString(sum[:])) {
		ownCA = nil
	}
	c.CA = ownCA
	return c
}

// Pin is what the policy says of this cluster, which is all that is ever sent. The
// host compares it with what it knows itself.
func (c Cluster) Pin() warrant.Pin {
	sum := sha256.Sum256(c.CA)
	return warrant.Pin{Endpoints: []string{c.Endpoint}, CASHA256: []string{hex.EncodeToString(sum[:])}}
}
