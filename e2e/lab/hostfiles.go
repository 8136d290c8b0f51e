//go:build linux

package lab

import (
	"bytes"
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
	if o.Bare {
		maps.Copy(files, o.Files)
		return files, nil
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
	if err := admit(l, files, o.RelayKey); err != nil {
		return nil, err
	}
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

// authorizedKeys is where sshd looks for the account's login keys, and no user can write.
const authorizedKeys = "/etc/kpssh/authorized_keys"

// admit fills the shipped authorized_keys in: the key may log in from the lab's own address only. Without a key
// nobody may.
func admit(l *Lab, files map[string]File, key ssh.PublicKey) error {
	shipped := files[authorizedKeys].Content
	if key == nil {
		files[authorizedKeys] = File{}
		return nil
	}
	for old, value := range map[string]string{"@FROM@": l.Addr().String(), "@KEY@": string(bytes.TrimSpace(ssh.MarshalAuthorizedKey(key)))} {
		if !bytes.Contains(shipped, []byte(old)) {
			return fmt.Errorf("filling in the shim's etc/authorized_keys: it has no %s", old)
		}
		shipped = bytes.ReplaceAll(shipped, []byte(old), []byte(value))
	}
	files[authorizedKeys] = File{Content: shipped}
	return nil
}

// shippedPlaces tells where each part of the shim's directory belongs on a host.
func shippedPlaces() map[string]struct {
	place string
	mode  os.FileMode
} {
	return map[string]struct {
		place string
		mode  os.FileMode
	}{
		"kpssh-shim":          {shimPath, 0o755},
		"etc/authorized_keys": {authorizedKeys, 0o644},
		"etc/shim.conf":       {"/etc/kpssh/shim.conf", 0o644},
		"etc/sshd_config.d/*": {"/etc/ssh/sshd_config.d/", 0o644},
		"etc/sudoers.d/*":     {"/etc/sudoers.d/", 0o440}, // sudo(8) ignores a file that others may write
	}
}

// shippedFiles takes what the shim's directory has for a host. Each part must be there: a host without its pinning
// would be no pool host.
func shippedFiles(dir string) (map[string]File, error) {
	files := map[string]File{}
	for pattern, to := range shippedPlaces() {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && len(found) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, fmt.Errorf("reading the shim's %s in %s: %w", pattern, dir, err)
		}
		for _, from := range found {
			content, err := os.ReadFile(from)
			if err != nil {
				return nil, fmt.Errorf("reading the shim's files: %w", err)
			}
			place := to.place
			if strings.HasSuffix(place, "/") {
				place += filepath.Base(from)
			}
			files[place] = File{Content: content, Mode: to.mode}
		}
	}
	return files, nil
}
