// Package kubescape gives a lab's API server the kinds of kubescape that hostwarrant guards, as CRDs
// of our own: stand-ins, made from the description of its wire format and named as such by a label.
//
// This is one of the two homes of a ContainerProfile. Here webhooks are asked; in the other one,
// e2e/storage, they are not. A cluster has one of the two: the group has one owner.
//
// The threat it stops is a test that stores what no API server would take, or that is refused what
// every API server takes: null lists, which signed content holds throughout.
package kubescape
