// Package policies carries the ValidatingAdmissionPolicies that the product installs, for the
// controller, which compares the cluster with them; and the test of the examples beside them.
package policies
