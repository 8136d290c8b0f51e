// Package manifests holds what the product installs, for the controller, which compares the cluster
// with it.
package manifests

import _ "embed"

// WebhookConfigurations returns base/webhook-configurations.yaml.
func WebhookConfigurations() string { return webhookConfigurations }

//go:embed base/webhook-configurations.yaml
var webhookConfigurations string
