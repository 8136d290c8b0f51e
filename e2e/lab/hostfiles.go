//go:build linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	hostPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	shimPath = "/opt/kpssh/kpssh-shim"
	hostUser = "kpssh"
)

// debianSSHD is what Debian's sshd_config says, comments left out, with the address and the keys of the host: the
// account's own rules come from sshd_config.d, as in production.
const debianSSHD = `Include /etc/ssh/sshd_config.d/*.conf
ListenAddress %s
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
KbdInteractiveAuthentication no
UsePAM yes
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
`

// debianSudoers is Debian's, comments left out.
const debianSudoers = `Defaults	env_reset
Defaults	mail_badpass
Defaults	secure_path="` + hostPath + `"
Defaults	use_pty
root	ALL=(ALL:ALL) ALL
%sudo	ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`

// staleOnHost is removed from the host's view of this machine before its own files are written: what the machine has
// there must not decide what a host does.
func staleOnHost() []string {
	return []string{
		"/etc/kpssh", "/opt/kpssh", "/var/lib/hostwarrant", "/var/lib/kpssh", "/run/kpssh", "/etc/nologin",
		"/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d", "/etc/ssh/ssh_host_*", "/etc/ssh/authorized_keys",
		"/etc/sudoers.d", "/etc/sudoers",
	}
}

// hostFiles is all that makes the host a pool host. The shim and the configuration of sshd and sudo are the shipped
// ones, byte for byte.
func hostFiles(l *Lab, h *Host, o HostOptions, keys map[string][]byte) (map[string]File, error) {
	files := map[string]File{
		"/etc/hostname":        {Content: []byte(h.Name + "\n")},
		"/etc/hosts":           {Content: fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", h.Addr, h.Name)},
		"/etc/ssh/sshd_config": {Content: fmt.Appendf(nil, debianSSHD, h.Addr)},
		"/etc/sudoers":         {Content: []byte(debianSudoers), Mode: 0o440},
	}
	for name, content := range keys {
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, ".pub") {
			mode = 0o644
		}
		files["/etc/ssh/"+name] = File{Content: content, Mode: mode}
	}
	dir := o.ShimDir
	if dir == "" {
		dir = filepath.Join(l.root, "shim")
	}
	shipped, err := shippedFiles(dir)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, shipped)
	files["/etc/kpssh/authorized_keys"] = File{Content: authorizedKeys(l, o.RelayKey)}
	for name, content := range map[string]string{"allowed_signers": o.AllowedSigners, "shim.conf": o.ShimConf} {
		if content != "" {
			files["/etc/kpssh/"+name] = File{Content: []byte(content)}
		}
	}
	for name, content := range o.TrustFiles {
		files["/etc/kpssh/"+name] = File{Content: []byte(content)}
	}
	maps.Copy(files, o.Files)
	return files, nil
}

// authorizedKeys is the line of DESIGN's production host: nothing but the shim, and only from the relay's address.
func authorizedKeys(l *Lab, key ssh.PublicKey) []byte {
	if key == nil {
		return nil
	}
	line := bytes.TrimSpace(ssh.MarshalAuthorizedKey(key))
	return fmt.Appendf(nil, "restrict,command=%q,from=%q %s\n", shimPath, l.Addr(), line)
}

// shippedFiles takes kpssh-shim and everything below etc/ from the shim's directory.
func shippedFiles(dir string) (map[string]File, error) {
	shim, err := os.ReadFile(filepath.Join(dir, "kpssh-shim"))
	if err != nil {
		return nil, fmt.Errorf("reading the shim: %w", err)
	}
	files := map[string]File{shimPath: {Content: shim, Mode: 0o755}}
	etc := filepath.Join(dir, "etc")
	err = filepath.WalkDir(etc, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f := File{Content: content}
		if strings.HasPrefix(inside, "etc/sudoers.d/") {
			f.Mode = 0o440 // sudo(8) ignores a file that others may write
		}
		files["/"+inside] = f
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the shim's configuration: no %s", etc)
	}
	return files, err
}
