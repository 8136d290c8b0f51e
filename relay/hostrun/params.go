package hostrun

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
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

// pin is what the policy says of this cluster, which is all that is ever sent. The
// host compares it with what it knows itself.
func (c Cluster) pin() warrant.Pin {
	sum := sha256.Sum256(c.CA)
	return warrant.Pin{Endpoints: []string{c.Endpoint}, CASHA256: []string{hex.EncodeToString(sum[:])}}
}

// The nine names that karpenter-provider-ssh always sends.
const (
	paramEndpoint    = warrant.ClusterEndpoint
	paramCA          = warrant.ClusterCA
	paramToken       = "KPSSH_BOOTSTRAP_TOKEN"
	paramNodeName    = "KPSSH_NODE_NAME"
	paramProviderID  = "KPSSH_PROVIDER_ID"
	paramNodeLabels  = "KPSSH_NODE_LABELS"
	paramTaints      = "KPSSH_TAINTS"
	paramHostAddress = "KPSSH_HOST_ADDRESS"
	paramNodeAddress = "KPSSH_NODE_ADDRESS"
)

// parameters are the nine names and one for each var. Leave and uninstall need
// nothing beyond the host, and get no more than its addresses and the vars.
func parameters(run *v1alpha1.HostRun, h *object.Host, c Cluster) map[string]string {
	nodeAddress := h.NodeAddress
	if nodeAddress == "" {
		nodeAddress = h.Address
	}
	params := map[string]string{
		paramEndpoint: "", paramCA: "", paramToken: "", paramNodeName: "", paramProviderID: "",
		paramNodeLabels: "", paramTaints: "",
		paramHostAddress: h.Address, paramNodeAddress: nodeAddress,
	}
	if run.Spec.Phase == v1alpha1.HostRunInstall || run.Spec.Phase == v1alpha1.HostRunJoin {
		params[paramEndpoint] = c.Endpoint
		params[paramCA] = base64.StdEncoding.EncodeToString(c.CA)
		params[paramNodeName] = run.Spec.NodeName
		params[paramProviderID] = "kpssh://" + run.Namespace + "/" + h.Name
	}
	for key, value := range run.Spec.Vars {
		params[warrant.VarPrefix+key] = string(value)
	}
	return params
}
