//go:build linux

package e2e

import (
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// guardHostReports: what hosts know is what the relay says of them.
func guardHostReports(t *testing.T, w *guardWorld) {
	const policy, only = "hostwarrant-host-reports", "only hostwarrant-relay writes the status of a HostState or HostStatement"
	w.allowed(t, encode(t, object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostState", "metadata": object{"namespace": pool, "name": "host-a"}}), "create", "-f", "-")
	w.allowed(t, encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostStatement", "metadata": object{"name": "told"},
		"spec": object{"statement": "x\n", "signatures": []string{testkit.Sign(t, w.signer, "hostwarrant-statement", []byte("x\n"))}},
	}), "create", "-f", "-")
	t.Cleanup(func() {
		w.allowed(t, nil, "-n", pool, "delete", "hoststate", "host-a")
		w.allowed(t, nil, "delete", "hoststatement", "told")
	})
	const current = `{"status":{"conditions":[{"type":"Current","status":"True","reason":"Current","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	says := func(who []string, object ...string) []string {
		return append(append(append([]string{}, who...), "-n", pool, "patch", "--subresource=status", "--type=merge", "-p", current), object...)
	}
	w.inForce(t, policy, only, nil, says(as("somebody"), "hoststate", "host-a")...)
	for _, object := range [][]string{{"hoststate", "host-a"}, {"hoststatement", "told"}} {
		for _, who := range []string{"somebody", account("hostwarrant-minter"), account("hostwarrant-controller"), account("hostwarrant-webhook")} {
			w.denied(t, policy, only, nil, says(as(who), object...)...)
		}
		w.allowed(t, nil, says(as(account("hostwarrant-relay")), object...)...)
		w.allowed(t, nil, append(append([]string{}, as("somebody")...), append([]string{"-n", pool, "annotate"}, append(object, "team=a")...)...)...)
	}
}
