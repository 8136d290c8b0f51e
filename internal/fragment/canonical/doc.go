// Package canonical computes the canonical hash of a JSON document: what a signature
// in kubescape's format covers.
//
// The hash leaves out array order and a few things more, and takes some values of
// different types for one (docs/spec/fragments.md). It is kept as it is, because
// published signatures depend on it; that nothing is smuggled through what it does
// not cover is the business of its callers.
package canonical
