package client

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Envelope is what stands on the shim's stdin (docs/spec/upstream.md, Envelope).
type Envelope struct {
	Phase     string
	Params    map[string]string
	Signature string
	Script    string
}

// Text is the envelope on the wire. It writes what it is given: tests send what the
// controller would not.
func (e Envelope) Text() string {
	var b strings.Builder
	b.WriteString("kpssh-envelope: 1\nphase: " + e.Phase + "\n")
	var params strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Params)) {
		params.WriteString(name + "=" + e.Params[name] + "\n")
	}
	for _, field := range [][2]string{{"params-b64", params.String()}, {"sig-b64", e.Signature}, {"script-b64", e.Script}} {
		if field[1] != "" {
			b.WriteString(field[0] + ": " + base64.StdEncoding.EncodeToString([]byte(field[1])) + "\n")
		}
	}
	return b.String()
}

var paramName = regexp.MustCompile(`^KPSSH_[A-Za-z0-9_]+$`)

// check refuses what the controller does not send.
func (e Envelope) check() error {
	if e.Script == "" || e.Signature == "" {
		return fmt.Errorf("phase %s without script or signature", e.Phase)
	}
	for name, value := range e.Params {
		if !paramName.MatchString(name) {
			return fmt.Errorf("%q is no name of a parameter", name)
		}
		if strings.Contains(value, "\n") {
			return fmt.Errorf("the value of %s holds a line feed", name)
		}
	}
	return nil
}

// Join is what a NodeClaim and its node class bring to install and join.
type Join struct {
	Endpoint    string
	CA          []byte // PEM
	Token       string // empty for install
	NodeName    string
	ProviderID  string // empty with Adopt
	Labels      string
	Taints      []string // beside karpenter's own
	Address     string
	NodeAddress string // empty: Address
	Vars        map[string]string
	Secrets     map[string]string
}

// Params are those of install and join.
func (j Join) Params() (map[string]string, error) {
	params := Leave(j.Address, j.NodeAddress)
	params["KPSSH_CLUSTER_ENDPOINT"] = j.Endpoint
	params["KPSSH_CLUSTER_CA_B64"] = base64.StdEncoding.EncodeToString(j.CA)
	params["KPSSH_BOOTSTRAP_TOKEN"] = j.Token
	params["KPSSH_NODE_NAME"] = j.NodeName
	params["KPSSH_PROVIDER_ID"] = j.ProviderID
	params["KPSSH_NODE_LABELS"] = j.Labels
	params["KPSSH_TAINTS"] = strings.Join(append([]string{"karpenter.sh/unregistered:NoExecute"}, j.Taints...), ",")
	for key, value := range j.Vars {
		params["KPSSH_VAR_"+key] = value
	}
	for key, value := range j.Secrets {
		name := "KPSSH_SECRET_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))
		if _, twice := params[name]; twice {
			return nil, errors.New("two keys of the secret become " + name)
		}
		params[name] = value
	}
	return params, nil
}

// Leave are the parameters of leave: nine names, two of them with a value.
func Leave(address, nodeAddress string) map[string]string {
	if nodeAddress == "" {
		nodeAddress = address
	}
	return map[string]string{
		"KPSSH_CLUSTER_ENDPOINT": "", "KPSSH_CLUSTER_CA_B64": "", "KPSSH_BOOTSTRAP_TOKEN": "", "KPSSH_NODE_NAME": "",
		"KPSSH_PROVIDER_ID": "", "KPSSH_NODE_LABELS": "", "KPSSH_TAINTS": "",
		"KPSSH_HOST_ADDRESS": address, "KPSSH_NODE_ADDRESS": nodeAddress,
	}
}
