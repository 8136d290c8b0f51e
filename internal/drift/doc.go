// Package drift compares what guards the cluster, the live webhook configurations and
// ValidatingAdmissionPolicies with their bindings, with what the product ships.
//
// It only tells. What somebody changed or deleted stays as it is: break-glass is a cluster admin
// deleting these, and must need no cooperation of ours. What may differ is what the cluster fills in:
// defaults of the API, metadata, status, and caBundle. The threat it stops: a rule, a selector or a
// failure policy that was changed so that the webhook is asked about less, or not heard, while a
// canary still comes through.
//
// Controller and relay read the objects, each with its own account, and ask here.
//
// Specification: docs/spec/canary.md.
package drift
