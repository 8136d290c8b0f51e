// Package manifests holds what the product installs, for controller and relay, which compare the cluster
// with it.
package manifests

import (
	_ "embed"

	"github.com/hostwarrant/hostwarrant/policies"
)

// Guards returns what guards the cluster: base/webhook-configurations.yaml, and the shipped
// ValidatingAdmissionPolicies with their bindings.
func Guards() ([]string, error) {
	texts, err := policies.Guards()
	return append([]string{webhookConfigurations}, texts...), err
}

//go:embed base/webhook-configurations.yaml
var webhookConfigurations string
