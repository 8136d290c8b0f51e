// Package v1alpha1 holds the product's own kinds: API group hostwarrant.dev, version v1alpha1.
//
// It holds types only: what a field means and which shapes the API server accepts. Whether a
// policy or a run may take effect is decided elsewhere, from the bytes of the object, so a type
// that drops a field here cannot weaken a check. CustomResourceDefinitions in manifests/crds and
// the deep-copy functions are generated from this package (make generate).
//
// Specification: docs/api/.
//
// +kubebuilder:object:generate=true
// +groupName=hostwarrant.dev
package v1alpha1
