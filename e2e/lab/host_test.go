//go:build linux

package lab_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// standInShim is not the shim: it shows that the forced command runs, as whom, and that sudo works without a word.
const standInShim = `#!/bin/sh
if [ "$(id -u)" -ne 0 ]; then
	printf 'as %s\n' "$(id -un)"
	exec sudo -n /opt/kpssh/kpssh-shim
fi
printf 'as root on %s, caller says %s\n' "$(uname -n)" "${SSH_ORIGINAL_COMMAND-nothing}"
cat
exit 7
`

// shimDir holds a stand-in for the shim with the pinning that a production host has.
func shimDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range map[string]string{
		"kpssh-shim": standInShim,
		"etc/sshd_config.d/kpssh.conf": `Match User kpssh
	ForceCommand /opt/kpssh/kpssh-shim
	AuthenticationMethods publickey
	AuthorizedKeysFile /etc/kpssh/authorized_keys
	DisableForwarding yes
	PermitTTY no
	PermitUserRC no
`,
		"etc/authorized_keys": "restrict,command=\"/opt/kpssh/kpssh-shim\",from=\"@FROM@\" @KEY@\n",
		"etc/shim.conf":       "warrant=optional\n",
		"etc/sudoers.d/kpssh": "Defaults!/opt/kpssh/kpssh-shim env_reset,!setenv,!requiretty\n" +
			"kpssh ALL=(root) NOPASSWD: /opt/kpssh/kpssh-shim \"\"\n",
	} {
		p := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func dial(h *lab.Host, user string, key ssh.Signer, hostKey ssh.PublicKey) (*ssh.Client, error) {
	return ssh.Dial("tcp", h.SSHAddr(), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{hostKey.Type()}, Timeout: time.Minute,
	})
}

func TestHostsRunTheForcedCommandAsRoot(t *testing.T) {
	key, dir := newSigner(t), shimDir(t)
	for _, name := range []string{"host-a", "host-b"} {
		begin := time.Now()
		h := shared.Host(t, lab.HostOptions{Name: name, RelayKey: key.PublicKey(), ShimDir: dir})
		t.Logf("%s at %s is up after %v", name, h.Addr, time.Since(begin))
		c, err := dial(h, "kpssh", key, h.HostKey)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		s.Stdin, s.Stdout, s.Stderr = strings.NewReader("envelope\n"), &stdout, &stderr
		var exit *ssh.ExitError
		if err := s.Run("id; touch /tmp/mine"); !errors.As(err, &exit) || exit.ExitStatus() != 7 {
			t.Errorf("Run: got %v, want exit 7", err)
		}
		want := "as kpssh\nas root on " + name + ", caller says nothing\nenvelope\n"
		if diff := cmp.Diff(want, stdout.String()); diff != "" {
			t.Errorf("stdout (-want +got):\n%s", diff)
		}
		if stderr.Len() > 0 {
			t.Errorf("stderr: %q", &stderr)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestHostRefusesWhatProductionRefuses(t *testing.T) {
	key := newSigner(t)
	h := shared.Host(t, lab.HostOptions{Name: "host-c", RelayKey: key.PublicKey(), ShimDir: shimDir(t)})
	for name, c := range map[string]struct {
		user    string
		key     ssh.Signer
		hostKey ssh.PublicKey
		want    string
	}{
		"another key":      {"kpssh", newSigner(t), h.HostKey, "unable to authenticate"},
		"another user":     {"root", key, h.HostKey, "unable to authenticate"},
		"another host key": {"kpssh", key, newSigner(t).PublicKey(), "host key mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := dial(h, c.user, c.key, c.hostKey); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("dial: got %v, want %q", err, c.want)
			}
		})
	}
}

func TestHostIsItsOwnAndLeavesTheMachineAlone(t *testing.T) {
	key := newSigner(t)
	before := etc(t)
	h := shared.Host(t, lab.HostOptions{
		Name: "host-d", RelayKey: key.PublicKey(), ShimDir: shimDir(t), AllowedSigners: "kpssh namespaces=\"kpssh\" x\n",
		TrustFiles: map[string]string{"cluster": "id lab\n"},
		Files:      map[string]lab.File{"/etc/marker": {Content: []byte("mine"), Mode: 0o600}},
	})
	ctx := t.Context()
	for name, c := range map[string]struct{ command, want string }{
		"trust files":          {"cat /etc/kpssh/allowed_signers /etc/kpssh/shim.conf /etc/kpssh/cluster", "kpssh namespaces=\"kpssh\" x\nwarrant=optional\nid lab\n"},
		"modes":                {"stat -c '%a %U %n' /etc/marker /etc/sudoers.d/kpssh /var/lib/hostwarrant /opt/kpssh/kpssh-shim", "600 root /etc/marker\n440 root /etc/sudoers.d/kpssh\n700 root /var/lib/hostwarrant\n755 root /opt/kpssh/kpssh-shim\n"},
		"the account":          {"id -u kpssh >/dev/null && getent passwd kpssh | cut -d: -f6,7", "/opt/kpssh:/bin/sh\n"},
		"sudoers are sound":    {"visudo -cq && echo sound", "sound\n"},
		"nothing but fresh":    {"ls -A /var/lib/hostwarrant; ls -A /root; ls -A /tmp; ls -d /run/kpssh 2>&1", "ls: cannot access '/run/kpssh': No such file or directory\n"},
		"few processes":        {"test $(ls -d /proc/[0-9]* | wc -l) -lt 12 && cat /proc/1/cmdline | tr '\\0' ' ' | grep -o 'hostwarrant-lab-helper host host-d'", "hostwarrant-lab-helper host host-d\n"},
		"no way out":           {"ip route | grep -c default", "0\n"},
		"sysctls are kept":     {"(echo 1 >/proc/sys/kernel/panic) 2>/dev/null || echo kept", "kept\n"},
		"no disks":             {"ls /dev | tr '\\n' ' '", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "},
		"writes stay":          {"useradd -r other && rm -rf /etc/apt && echo x >/etc/issue && cat /etc/issue", "x\n"},
		"orphans are reaped":   {"sh -c '(exec true) & exec true'; while grep -q 'State:.Z' /proc/[0-9]*/status 2>/dev/null; do :; done; echo all", "all\n"},
		"standard input is on": {"cat", "from outside"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := h.Exec(ctx, strings.NewReader("from outside"), "sh", "-c", c.command)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.Stdout); diff != "" {
				t.Errorf("%s: exit %d, stderr %q (-want +got):\n%s", c.command, r.Code, r.Stderr, diff)
			}
		})
	}
	if diff := cmp.Diff(before, etc(t)); diff != "" {
		t.Errorf("/etc of the machine (-before +after):\n%s", diff)
	}
}

func TestHostFilesFromOutside(t *testing.T) {
	h := shared.Host(t, lab.HostOptions{Name: "host-e", ShimDir: shimDir(t)})
	if err := h.WriteFile("/var/lib/hostwarrant/runs/x", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := h.ReadFile("/var/lib/hostwarrant/runs/x")
	if err != nil || string(b) != "one" {
		t.Errorf("ReadFile: got %q, %v", b, err)
	}
	if b, err = os.ReadFile(h.Path("/var/lib/hostwarrant/runs/x")); err != nil || string(b) != "one" {
		t.Errorf("Path: got %q, %v", b, err)
	}
	if _, err := h.ReadFile("/nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of nothing: got %v", err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if r, err := h.Exec(t.Context(), nil, "ln", "-s", victim, "/var/lib/link"); err != nil || r.Code != 0 {
		t.Fatal(r, err)
	}
	if err := h.WriteFile("/var/lib/link", []byte("x"), 0o600); err == nil {
		t.Error("WriteFile followed an absolute link of the host")
	}
	if exists(victim) != nil {
		t.Error("WriteFile wrote to the machine")
	}
}

func TestHostExecEndsWithItsContext(t *testing.T) {
	h := shared.Host(t, lab.HostOptions{Name: "host-f", ShimDir: shimDir(t)})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := h.Exec(ctx, nil, "sleep", "600"); err == nil {
		t.Fatal("Exec: got no error, want the end of the context")
	}
	eventually(t, func() string {
		r, err := h.Exec(t.Context(), nil, "sh", "-c", "cat /proc/[0-9]*/comm | grep -c sleep")
		if err != nil || r.Stdout != "0\n" {
			return fmt.Sprintf("sleep is left: %q, %v", r.Stdout, err)
		}
		return ""
	})
}

func TestStartHostSaysWhatIsWrong(t *testing.T) {
	l := shared.Lab(t)
	good, odd := shimDir(t), shimDir(t)
	if err := os.WriteFile(filepath.Join(odd, "etc/authorized_keys"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options lab.HostOptions
		want    string
	}{
		"no name":            {lab.HostOptions{ShimDir: good}, `starting host "": the name is no DNS label`},
		"a bad name":         {lab.HostOptions{Name: "a;b", ShimDir: good}, "the name is no DNS label"},
		"no shim":            {lab.HostOptions{Name: "a", ShimDir: t.TempDir()}, "reading the shim's"},
		"a bad sshd file":    {lab.HostOptions{Name: "a", ShimDir: good, Files: map[string]lab.File{"/etc/ssh/sshd_config.d/x.conf": {Content: []byte("Nonsense yes\n")}}}, "Bad configuration option: Nonsense"},
		"an impossible file": {lab.HostOptions{Name: "a", ShimDir: good, Files: map[string]lab.File{"/etc/passwd/x": {}}}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := l.StartHost(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("StartHost: got %v, want %q", err, c.want)
			}
			if left := links(t, l.ID()); len(left) > 1 {
				t.Errorf("links left: %q", left)
			}
		})
	}
}

func TestSilentRefusedAndAbsent(t *testing.T) {
	l := shared.Lab(t)
	s, err := l.SilentHost()
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read from a silent host: got %d bytes, %v", n, err)
	}
	if err := errors.Join(c.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	refused, err := l.RefusedAddr()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", refused.String()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("dial %s: got %v", refused, err)
	}
	if !l.Prefix().Contains(l.AbsentAddr().Addr()) {
		t.Errorf("AbsentAddr %s is not in %s", l.AbsentAddr(), l.Prefix())
	}
}
