package policies

import (
	"embed"
	"io/fs"
)

//go:embed anchor.yaml canary.yaml composites.yaml controller-hosts.yaml crds.yaml decommission.yaml host-reports.yaml hostrun-status.yaml leases.yaml ledger.yaml minter-approvals.yaml minter-secrets.yaml profile-shape.yaml serving-secret.yaml trust-policy.yaml
var shipped embed.FS

// Guards returns the shipped files with ValidatingAdmissionPolicies and their bindings: those that
// kustomization.yaml lists.
func Guards() ([]string, error) {
	entries, err := fs.ReadDir(shipped, ".")
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, entry := range entries {
		text, err := fs.ReadFile(shipped, entry.Name())
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
