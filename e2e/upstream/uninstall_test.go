//go:build linux

package upstream

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// published is a profile whose uninstall removes, with the rest of its traces, the directory
// that the published examples keep their own state in.
const published = `apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHJoinProfile
metadata: {name: tls-bootstrap}
spec:
  version: "1"
  scripts:
    install: "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /var/lib/kpssh\ntouch /var/lib/kpssh/installed\n"
    join: "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /var/lib/kpssh /etc/kubernetes\ntouch /etc/kubernetes/kubelet.conf\n"
    leave: "#!/usr/bin/env bash\nset -euo pipefail\nrm -rf /etc/kubernetes\n"
    uninstall: |
      #!/usr/bin/env bash
      set -euxo pipefail
      systemctl disable --now kubelet 2>/dev/null || true
      rm -rf /etc/kubernetes /var/lib/kpssh
      systemctl daemon-reload
      echo "kpssh uninstall: OK"
`

// TestTheUninstallOfAPublishedProfileLeavesOurMarks signs the profile whole, with a warrant, and
// plays install, join, leave and uninstall by that project's controller.
func TestTheUninstallOfAPublishedProfileLeavesOurMarks(t *testing.T) {
	w := newWorld(t)
	h := w.ours(t, "ours", conf("required"))
	withoutSystemd(t, h)
	p := w.signProfile(t, "tls-bootstrap", published)
	for _, phase := range []string{"install", "join", "leave"} {
		w.runs(t, h, p, phase)
	}
	h.Must(t, "[ -e /var/lib/kpssh/installed ]")
	w.runs(t, h, p, "uninstall")
	h.Must(t, "[ ! -e /var/lib/kpssh ]")
	w.keptMarks(t, h, p)
}

// TestTheUninstallOfTheExamplesLeavesOurMarks takes the examples as they are published. Only their
// uninstall is run: the rest would install packages.
func TestTheUninstallOfTheExamplesLeavesOurMarks(t *testing.T) {
	for _, name := range []string{"tls-bootstrap", "sbc"} {
		t.Run(name, func(t *testing.T) {
			text := string(testkit.Corpus(t, "upstream/examples/profile-"+name+".yaml"))
			if !strings.Contains(text, "/opt/cni /var/lib/kpssh\n") {
				t.Fatal("its uninstall does not remove /var/lib/kpssh any more: see whether it removes what is ours")
			}
			w := newWorld(t)
			h := w.ours(t, "ours", conf("required"))
			h.Must(t, "echo '"+name+" 1' >/etc/kpssh/floors; mkdir -p /var/lib/kpssh /etc/kubernetes")
			withoutSystemd(t, h)
			p := w.signProfile(t, name, text)
			w.runs(t, h, p, "uninstall")
			h.Must(t, "[ ! -e /var/lib/kpssh ] && [ ! -e /etc/kubernetes ]")
			if mark := h.Must(t, "cat /var/lib/hostwarrant/marks/"+name); mark != fmt.Sprintf("serial 1\nuninstall %s\n", digest(p.Scripts["uninstall"])) {
				t.Errorf("the mark is %q", mark)
			}
		})
	}
}

// keptMarks wants the mark of serial 1 with all four digests, and that it still holds.
func (w *world) keptMarks(t *testing.T, h *lab.Host, p client.Profile) {
	t.Helper()
	want := "serial 1\n"
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		want += phase + " " + digest(p.Scripts[phase]) + "\n"
	}
	if mark := h.Must(t, "cat /var/lib/hostwarrant/marks/tls-bootstrap"); mark != want {
		t.Errorf("the mark is %q, want %q", mark, want)
	}
	other := w.signProfile(t, "tls-bootstrap", strings.Replace(published, "touch /var/lib/kpssh/installed", "touch /var/lib/kpssh/another", 1))
	if got := w.theirCaller(t, h, "install", other, installParams(t)); got.code != 21 {
		t.Errorf("other bytes of the same serial: exit %d, want 21: %s", got.code, got.stderr)
	}
}

func (w *world) runs(t *testing.T, h *lab.Host, p client.Profile, phase string) {
	t.Helper()
	params := client.Leave("10.0.0.21", "")
	if phase == "install" || phase == "join" {
		params = installParams(t)
	}
	if got := w.theirCaller(t, h, phase, p, params); got.code != 0 {
		t.Fatalf("%s: exit %d: %s", phase, got.code, got.stderr)
	}
}

func installParams(t *testing.T) map[string]string {
	t.Helper()
	return joinParams(t, func(j *client.Join) { j.Token, j.Vars, j.Secrets = "", nil, nil })
}

// withoutSystemd puts programs that do nothing in the place of those that the scripts call and
// that would need a running system.
func withoutSystemd(t *testing.T, h *lab.Host) {
	t.Helper()
	h.Must(t, `for name in systemctl apt-get apt-mark; do rm -f "/usr/bin/$name"; printf '#!/bin/sh\nexit 0\n' >"/usr/bin/$name"; chmod 755 "/usr/bin/$name"; done`)
}

// signProfile has the command line sign an SSHJoinProfile, and reads what it then holds.
func (w *world) signProfile(t *testing.T, name, text string) client.Profile {
	t.Helper()
	dir := t.TempDir()
	file := testkit.WriteFile(t, dir, "profile.yaml", []byte(text))
	out := hostwarrant(t, "sign", file, "--serial", "1", "--target", "class bm", "--key", testkit.WriteFile(t, filepath.Join(dir, "keys"), "signer", w.signer.PEM))
	p := readProfile(t, out)
	if !strings.Contains(p.Scripts["uninstall"], "\n#warrant: profile "+name+"\n") {
		t.Fatalf("signed for another profile than %s: %s", name, p.Scripts["uninstall"])
	}
	return p
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
