//go:build linux

package lab

import (
	"fmt"
	"os"
)

// auditPolicy records writes of the guarded kinds and of what guards them, without their content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: karpenter.dklesev.github.io}
  - {group: hostwarrant.dev}
  - {group: admissionregistration.k8s.io}
- level: None
`

// auditArgs are kube-apiserver's for an audit log, or none.
func (c *ControlPlane) auditArgs(wanted bool) ([]string, error) {
	if !wanted {
		return nil, nil
	}
	policy := c.lab.state.path("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	c.AuditLog = c.lab.state.path("audit.log")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.AuditLog, "--audit-log-mode=blocking"}, nil
}
