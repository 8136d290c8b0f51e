// Package node shows on a real kubelet and containerd how a host becomes a node of the cluster and a blank host again:
// HostRuns, minter, relay and approver, with the scripts of examples/join on hosts of e2e/lab.
package node
