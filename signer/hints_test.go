package main

import (
	"strings"
	"testing"
)

// Who is stuck is told the next command.
func TestWhoIsStuckIsToldWhatToDo(t *testing.T) {
	w := newWorld(t)
	other := w.write("other.yaml", "kind: ConfigMap\nmetadata: {name: config}\n")
	loose := w.write("loose.yaml", "apiVersion: spdx.softwarecomposition.kubescape.io/v1beta1\nkind: ContainerProfile\nmetadata: {name: x, namespace: shop}\nspec: {}\n")
	empty := w.write("empty.json", `{"kind":"List","apiVersion":"v1","items":[]}`)
	for name, c := range map[string]struct {
		args       []string
		says, next string
	}{
		"a fleet without hosts":       {[]string{"fleet", empty}, "holds no SSHHost", "hint: kubectl get sshhosts,hoststates,hoststatements,trustpolicies,sshjoinprofiles -A -o json | hostwarrant fleet -"},
		"nothing to inspect":          {[]string{"inspect", other}, "there is nothing to inspect", "hint: inspect takes objects"},
		"a packed policy is packed":   {[]string{"policy", "pack", w.policy}, "is not a bare policy document", "kubectl apply -f FILE"},
		"nothing to assemble":         {[]string{"bundle", "explain", other, "--policy", w.policy, "--root", w.pubs}, "there is nothing to assemble", "hint: give files or directories"},
		"a bundle without a fragment": {[]string{"bundle", "explain", loose, "--bundle", "x", "--policy", w.policy, "--root", w.pubs}, `there is no fragment of the bundle "x"`, "hint: " + askBundles},
		"no bundle at all":            {[]string{"bundle", "assemble", loose, "--policy", w.policy, "--root", w.pubs}, "there is no fragment of any bundle", "hint: " + askBundles},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.hostwarrant(c.args...)
			if r.code != exitUndecided || !strings.Contains(r.err, c.says) || !strings.Contains(r.err, c.next) {
				t.Errorf("exit %d: %s; want exit %d, %q and %q", r.code, r.err, exitUndecided, c.says, c.next)
			}
		})
	}
}
