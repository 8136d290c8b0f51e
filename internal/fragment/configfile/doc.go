// Package configfile reads and verifies signed configurations of kubescape's
// signed-fragments build: {"config": …, "annotations": …}.
//
// Experimental: it follows a description, since none was ever published. It stops one
// threat: that a configuration is taken for signed which its root did not sign, whole
// and in one meaning. What a configuration says is not looked at. The format stands in
// docs/spec/fragments.md.
package configfile
