//go:build linux

package provision

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/guide"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestTheHostsPage runs each command of docs/operations/hosts.md as it stands there: those of an operator on
// the operator's machine, those of "Repair" on the host.
func TestTheHostsPage(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	d := w.desk(t, h)

	d.Follow(t, "Set up", 0)
	d.Follow(t, "Set up", 1)
	if data := d.Run(t, "cat user-data"); !strings.HasPrefix(data, "#cloud-config\n") {
		t.Errorf("the user data begins with %.40q", data)
	}
	if role := d.Run(t, "cat roles/hostwarrant_host/tasks/main.yml"); !strings.HasPrefix(role, "---\n") {
		t.Errorf("the role begins with %.40q", role)
	}
	if facts := strings.Fields(d.Follow(t, "Set up", 2)); len(facts) < 3 || len(facts) > 4 {
		t.Errorf("a probe prints %q", facts)
	}
	if said := d.Follow(t, "Check", 0); !strings.HasSuffix(said, ": as trust policy 1 says\n") {
		t.Errorf("check says %q", said)
	}

	if said := d.Follow(t, "Send a statement", 0); strings.Contains(said, "kpssh-shim:") {
		t.Errorf("the shim says %q to the statement", said)
	}
	h.Must(t, "grep -qx 'serial 5' "+state+"/statements/revoke")

	h.Must(t, "mkdir -m 700 "+state+"/marks; echo x >"+state+"/marks/tls-bootstrap; echo 1700000000 >"+state+"/time-floor")
	for i, line := range strings.Split(strings.TrimSpace(d.Page.Block(t, "Repair", 0)), "\n") {
		want := []struct {
			code int
			says string
		}{{1, "would set "}, {0, "done: set "}, {0, "serial 42\n"}}[i]
		if r := on(t, h, line); r.code != want.code || !strings.Contains(r.out, want.says) {
			t.Errorf("%s: %+v", line, r)
		}
	}
	d.Follow(t, "Check", 0)

	d.Follow(t, "Remove", 0)
	h.Must(t, "! getent passwd kpssh && ! test -e /etc/kpssh && grep -qx 'serial 42' "+state+"/marks/tls-bootstrap")
	d.Page.AllUsed(t)
}

// desk has what the page says that it takes, under the page's names.
func (w *world) desk(t *testing.T, h *lab.Host) *guide.Desk {
	t.Helper()
	d := &guide.Desk{
		Dir: t.TempDir(), Page: guide.Read(t, filepath.Join(shared.Lab(t).Root(), "docs", "operations", "hosts.md")),
		Instead: strings.NewReplacer("192.0.2.5", shared.Lab(t).Addr().String(), "prod-1", "lab-1", "bm-amd64", "bm"),
	}
	files := map[string]string{
		"operator": string(w.login.PEM), "relay": string(w.login.PEM), "relay.pub": w.login.Line + "\n",
		"root": string(w.root.PEM), "lost.pub": testkit.NewSigner(t, "ed25519").Line + "\n",
		"trust-policy.yaml": w.read(t, "policy.yaml"), "trust-policy.yaml.sig": w.read(t, "policy.yaml.sig"),
	}
	for _, name := range []string{"root.pub", "SHA256SUMS", "SHA256SUMS.sig", "release.pub"} {
		files[name] = w.read(t, name)
	}
	for name, text := range files {
		testkit.WriteFile(t, d.Dir, name, []byte(text))
	}
	d.KnowHost(t, "192.0.2.7", h.Addr.String(), h.KnownHostLine())
	return d
}
