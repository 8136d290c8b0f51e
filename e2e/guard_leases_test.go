//go:build linux

package e2e

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/product"
)

// guardLeases: who leads in one program cannot say that somebody leads in another.
func guardLeases(t *testing.T, w *guardWorld) {
	const policy, own = "hostwarrant-leases", "a program of hostwarrant creates no Lease but the one of its own name"
	lease := func(meta object) []byte {
		meta["namespace"] = product.Namespace
		return encode(t, object{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta,
			"spec": object{"holderIdentity": "nobody", "leaseDurationSeconds": 2000000000},
		})
	}
	named := func(name string) []byte { return lease(object{"name": name}) }
	creates := func(user string) []string { return append([]string{"create", "-f", "-"}, as(user)...) }
	programs := []string{"hostwarrant-controller", "hostwarrant-relay", "hostwarrant-minter"}
	w.inForce(t, policy, own, named("hostwarrant-minter"), creates(account("hostwarrant-relay"))...)
	for _, by := range programs {
		for _, name := range programs {
			if by != name {
				w.denied(t, policy, own, named(name), creates(account(by))...)
			}
		}
		w.denied(t, policy, own, named("other"), creates(account(by))...)
		w.denied(t, policy, own, lease(object{"generateName": by + "-"}), creates(account(by))...)
		w.allowed(t, named(by), append(creates(account(by)), "--dry-run=server")...)
	}
	w.allowed(t, named("hostwarrant-minter"), append(creates("somebody"), "--dry-run=server")...) // whom RBAC has let
}
