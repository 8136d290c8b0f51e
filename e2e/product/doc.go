// Package product installs hostwarrant into a lab's control plane the way its
// manifests ship it, and runs its programs outside pods, each with the token of
// its own ServiceAccount. The demonstration and the end-to-end tests stand on it.
//
// It makes what an operator brings along (keys, anchor, policy, hosts' files)
// with the hostwarrant CLI.
package product
