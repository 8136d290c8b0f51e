//go:build linux

package lab

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// ReloadSSHD has the sshd that listens read its configuration, and waits until it listens again.
func (h *Host) ReloadSSHD(t testing.TB) {
	t.Helper()
	listens := func() int { return strings.Count(h.Log(10000), "Server listening") }
	before := listens()
	r, err := h.Exec(t.Context(), nil, "sh", "-c", `for p in /proc/[0-9]*; do if [ "$(cat $p/comm 2>/dev/null)" = sshd ] && grep -qz listener $p/cmdline; then kill -HUP ${p#/proc/}; fi; done`)
	if err != nil || r.Code != 0 {
		t.Fatalf("reloading sshd of %s: %v, exit %d: %s", h.Name, err, r.Code, r.Stderr)
	}
	testkit.Eventually(t, testStartLimit, "sshd to listen with its new configuration", func() bool { return listens() > before })
}
