// Package v1beta1 describes the kinds of karpenter-provider-ssh that the product guards: API group
// karpenter.dklesev.github.io, version v1beta1.
//
// The kinds belong to that project and its CustomResourceDefinitions are installed with it, so the
// product's manifests hold none. The definitions generated from this package (e2e/testdata/crds)
// serve tests and demonstrations where the original ones are not at hand; a test holds both to the
// same verdicts and defaults. Decisions never read objects through these types, which would drop a
// field they do not know, but from the bytes of the request.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.dklesev.github.io
package v1beta1
