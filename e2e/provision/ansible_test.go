//go:build linux

package provision

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// playbook is where the role is used from, over ssh as root.
type playbook struct {
	t   *testing.T
	dir string
	h   *lab.Host
}

func (w *world) playbook(t *testing.T, h *lab.Host) *playbook {
	t.Helper()
	testkit.Tool(t, "ansible-playbook")
	p := &playbook{t, t.TempDir(), h}
	sockets, err := os.MkdirTemp("", "cp") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(sockets); err != nil {
			t.Error(err)
		}
	})
	for name, text := range map[string]string{
		"login": string(w.login.PEM), "known_hosts": h.KnownHostLine() + "\n",
		"inventory": fmt.Sprintf("%s ansible_user=root ansible_python_interpreter=/usr/bin/python3\n", h.Addr),
		"ansible.cfg": fmt.Sprintf("[defaults]\ninventory = inventory\nroles_path = roles\nremote_tmp = /tmp/ansible\nlocal_tmp = %s/tmp\n[ssh_connection]\n"+
			"ssh_args = -F /dev/null -o ControlMaster=auto -o ControlPersist=5s -o IdentityFile=%s/login -o IdentitiesOnly=yes -o UserKnownHostsFile=%s/known_hosts\nretries = 5\npipelining = true\ncontrol_path_dir = %s\n", p.dir, p.dir, p.dir, sockets),
		"setup.yml":  "- hosts: all\n  gather_facts: false\n  roles: [hostwarrant_host]\n",
		"remove.yml": "- hosts: all\n  gather_facts: false\n  roles: [hostwarrant_gone]\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.provision(t, append(w.flags(t, w.dir), "--format", "ansible", "-o", filepath.Join(p.dir, "roles", "hostwarrant_host"))...)
	w.provision(t, "--remove", "--purge", "--format", "ansible", "-o", filepath.Join(p.dir, "roles", "hostwarrant_gone"))
	return p
}

var recap = regexp.MustCompile(`ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)`)

// play gives how many tasks changed something, and what was printed.
func (p *playbook) play(args ...string) (changed string, failed bool, out string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ansible-playbook", args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LC_ALL=C.UTF-8", "ANSIBLE_NOCOLOR=1"}
	text, err := cmd.CombinedOutput()
	m := recap.FindStringSubmatch(string(text))
	if m == nil {
		p.t.Fatalf("ansible-playbook %q: %v\n%s", args, err, text)
	}
	return m[2], m[3] != "0" || m[4] != "0", string(text)
}

func TestTheAnsibleRoleMakesAPoolHostOfAnEmptyOne(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	p := w.playbook(t, h)
	if changed, failed, out := p.play("--check", "setup.yml"); failed || changed == "0" {
		t.Errorf("a dry run: %s changed\n%s", changed, out)
	}
	h.Must(t, "! test -e /etc/kpssh && ! getent passwd kpssh")
	if changed, failed, out := p.play("setup.yml"); failed || changed == "0" {
		t.Fatalf("the first run: %s changed\n%s", changed, out)
	}
	wantGreen(t, w.check(t, h))
	if r := w.send(t, h, envelope("probe", "", "")); r.code != 0 {
		t.Errorf("probe over ssh: %+v", r)
	}
	put(t, h, "/root/setup.sh", []byte(w.provision(t, w.flags(t, w.dir)...)), 0o700)
	if out := h.Must(t, "/root/setup.sh"); !strings.HasPrefix(out, "hostwarrant: nothing to change: ") {
		t.Errorf("the script sees it otherwise:\n%s", out)
	}
	h.Must(t, "mkdir -m 700 /var/lib/hostwarrant/statements && echo x >/var/lib/hostwarrant/statements/floor && echo 'web-* 9' >/etc/kpssh/floors")
	before := h.Must(t, listing)
	if changed, failed, out := p.play("setup.yml"); failed || changed != "0" {
		t.Errorf("the second run: %s changed\n%s", changed, out)
	}
	if diff := cmp.Diff(before, h.Must(t, listing)); diff != "" {
		t.Errorf("the second run changed something all the same:\n%s", diff)
	}

	if changed, failed, out := p.play("remove.yml"); failed || changed == "0" {
		t.Errorf("removing: %s changed\n%s", changed, out)
	}
	h.Must(t, "! test -e /etc/kpssh && ! test -e /opt/kpssh && ! test -e /var/lib/hostwarrant && ! getent passwd kpssh && ! test -e /etc/sudoers.d/kpssh && ! test -e /etc/ssh/sshd_config.d/kpssh.conf && sshd -t")
}

func TestTheAnsibleRoleStopsBeforeItDoesHarm(t *testing.T) {
	w := newWorld(t)
	h := w.bare(t, nil)
	p := w.playbook(t, h)
	h.Must(t, "printf 'Match User kpssh\\nPermitTTY yes\\nMatch all\\n' >/etc/ssh/sshd_config.d/10-mine.conf")
	if _, failed, out := p.play("setup.yml"); !failed || !strings.Contains(out, "sshd does not say for kpssh: permittty no; /etc/ssh/sshd_config.d/kpssh.conf is as it was") {
		t.Errorf("failed: %v\n%s", failed, out)
	}
	h.Must(t, "! test -e /etc/ssh/sshd_config.d/kpssh.conf && ! test -e /etc/kpssh/authorized_keys && sshd -t && test $(ls /etc/ssh/sshd_config.d | wc -l) = 1")
}
