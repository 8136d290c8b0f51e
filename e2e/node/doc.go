// Package node shows on a real kubelet and containerd that a signed script makes a host a node, and that another takes
// it away again: examples/join, on hosts of e2e/lab.
package node
