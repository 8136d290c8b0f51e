package hostrun

import (
	"encoding/base64"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

// The nine names that karpenter-provider-ssh always sends.
const (
	paramEndpoint    = warrant.ClusterEndpoint
	paramCA          = warrant.ClusterCA
	paramToken       = judge.BootstrapToken
	paramNodeName    = "KPSSH_NODE_NAME"
	paramProviderID  = "KPSSH_PROVIDER_ID"
	paramNodeLabels  = "KPSSH_NODE_LABELS"
	paramTaints      = "KPSSH_TAINTS"
	paramHostAddress = "KPSSH_HOST_ADDRESS"
	paramNodeAddress = "KPSSH_NODE_ADDRESS"
)

// parameters are the nine names and one for each var. Leave and uninstall need
// nothing beyond the host, and get no more than its addresses and the vars.
func parameters(run *v1alpha1.HostRun, h *object.Host, c judge.Cluster) map[string]string {
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
