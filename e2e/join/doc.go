// Package join tests how a host becomes a node: tokens, who gets them and who does not, on a real API
// server with the controllers of kube-controller-manager that sign, clean up and approve, and with
// relay and minter as processes of their own, each under its own account.
package join
