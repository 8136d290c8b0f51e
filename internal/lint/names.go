package lint

import (
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/script"
)

const (
	paramPrefix  = "KPSSH_"
	varPrefix    = "KPSSH_VAR_"
	secretPrefix = "KPSSH_SECRET_"
	endpoint     = "KPSSH_CLUSTER_ENDPOINT"
	ca           = "KPSSH_CLUSTER_CA_B64"
	token        = "KPSSH_BOOTSTRAP_TOKEN"
)

// builtIn are the nine names that karpenter-provider-ssh always sends (docs/spec/warrant.md).
func builtIn() []string {
	return append(addresses(), endpoint, ca, token, "KPSSH_NODE_NAME", "KPSSH_PROVIDER_ID", "KPSSH_NODE_LABELS", "KPSSH_TAINTS")
}

// addresses are the two of them that are not empty in leave and uninstall.
func addresses() []string { return []string{"KPSSH_HOST_ADDRESS", "KPSSH_NODE_ADDRESS"} }

func isBuiltIn(name string) bool { return slices.Contains(builtIn(), name) }
func isParam(name string) bool   { return strings.HasPrefix(name, paramPrefix) && name != paramPrefix }

// declared tells whether the warrant names a parameter.
func (s *source) declared(name string) bool {
	if s.warrant == nil {
		return false
	}
	for _, p := range s.warrant.Params {
		if p.Name == name {
			return true
		}
	}
	return false
}

// isSecret tells the parameters that hold secrets: the bootstrap token, what the warrant declares
// secret, and what a node class takes from its Secret.
func (s *source) isSecret(name string) bool {
	if name == token || strings.HasPrefix(name, secretPrefix) {
		return true
	}
	if s.warrant == nil {
		return false
	}
	for _, p := range s.warrant.Params {
		if p.Name == name && p.Secret {
			return true
		}
	}
	return false
}

// secretNames are the secret parameters that a script uses, and the variables that it gives their values to.
func secretNames(s *source) map[string]bool {
	names := map[string]bool{}
	for _, u := range s.facts.uses {
		if s.isSecret(u.name) {
			names[u.name] = true
		}
	}
	for grown := len(names) > 0; grown; {
		grown = spread(s.facts.assigns, names)
	}
	return names
}

// spread adds the variables that get a value from a secret one, and tells whether there were new ones.
// Inner assignments come behind outer ones.
func spread(assigns []assign, secret map[string]bool) bool {
	grown := false
	inner := make([]bool, len(assigns))
	for i := len(assigns) - 1; i >= 0; i-- {
		a := assigns[i]
		if !inner[i] && !slices.ContainsFunc(a.direct, func(name string) bool { return secret[name] }) {
			continue
		}
		if a.outer >= 0 {
			inner[a.outer] = true
		}
		if a.name != "" && !secret[a.name] {
			secret[a.name], grown = true, true
		}
	}
	return grown
}

// secretInScope tells whether the phase is given a secret at all.
func (s *source) secretInScope() bool {
	if len(s.facts.secrets) > 0 {
		return true
	}
	if s.warrant == nil {
		return s.phase == script.Join
	}
	for _, p := range s.warrant.Params {
		if p.Secret {
			return true
		}
	}
	return s.phase == script.Join
}
