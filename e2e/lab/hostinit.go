//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hostConfig goes to the host's first process through a pipe.
type hostConfig struct {
	Name  string
	Addr  netip.Addr
	Dir   string // directory of this machine that the host's file system is built on, in its own mount namespace
	Files map[string]File
	Bare  bool // without account and directories of ours
	Node  *nodeConfig
}

// hostReady is the first process's word that sshd answers; anything else on the pipe is an error.
const hostReady = "ready\n"

// listening is how /proc/net/tcp shows a socket that listens on port 22: port, no peer, TCP_LISTEN.
const listening = ":0016 00000000:0000 0A"

// sshdLimit bounds the start of sshd: 30 ms on a quiet machine.
const sshdLimit = 30 * time.Second

// runHost is the first process of a host: it builds the host around itself, starts sshd, and reaps orphans until
// sshd ends, which ends the host.
func runHost() error {
	in, out := os.NewFile(3, "config"), os.NewFile(4, "ready")
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	var c hostConfig
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return fmt.Errorf("reading the host's configuration: %w", err)
	}
	sshd, err := buildHost(&c)
	word := hostReady
	if err != nil {
		word = err.Error()
	}
	_, werr := out.WriteString(word)
	if err := errors.Join(err, werr, out.Close(), in.Close()); err != nil {
		return err
	}
	return reapUntil(sshd)
}

func buildHost(c *hostConfig) (sshd int, err error) {
	if err := syscall.Sethostname([]byte(c.Name)); err != nil {
		return 0, fmt.Errorf("setting the host name: %w", err)
	}
	cidr := netip.PrefixFrom(c.Addr, 24).String()
	// There is no route out: a host reaches the lab and nothing else.
	if err := ip(context.Background(), "link set lo up", "addr add "+cidr+" dev eth0", "link set eth0 up"); err != nil {
		return 0, err
	}
	if err := mountHost(c.Dir); err != nil {
		return 0, err
	}
	if err := mountNode(c.Dir, filepath.Join(c.Dir, "root"), c.Node); err != nil {
		return 0, err
	}
	if err := enterHost(filepath.Join(c.Dir, "root")); err != nil {
		return 0, err
	}
	if err := removeStale(); err != nil {
		return 0, err
	}
	if err := makeDirectories(c.Bare); err != nil {
		return 0, err
	}
	if err := writeHostFiles(c.Files); err != nil {
		return 0, err
	}
	if err := setUser(c.Bare); err != nil {
		return 0, err
	}
	return startSSHD()
}

// mountHost puts an overlay of this machine's root and the file systems of a running system at dir/root. The layers
// are on a tmpfs: an overlay cannot have its upper layer below its lower one, nor on another overlay.
func mountHost(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making / private (it must be a mount point; bind-mount the directory onto itself before chroot): %w", err)
	}
	if err := syscall.Mount("hostwarrant-lab", dir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(at(d), 0o755); err != nil {
			return err
		}
	}
	layers := "lowerdir=/,upperdir=" + at("upper") + ",workdir=" + at("work")
	if err := syscall.Mount("hostwarrant-lab", at("root"), "overlay", 0, layers); err != nil {
		return fmt.Errorf("mounting an overlay of / (%s): %w; an overlay stacks on ext4, xfs, btrfs, tmpfs and on one other overlay", rootType(), err)
	}
	return mountSystem(at("root"))
}

// rootType names the file system of / for the message of a failure.
func rootType() string {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "unknown file system"
	}
	kind := "not a mount point"
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "/" {
			kind = f[2]
		}
	}
	return kind
}

// mountSystem makes /proc, /sys, /dev and the fresh directories. What belongs to the whole machine can be read, not
// written: a script that runs as root on a host must not change the machine.
func mountSystem(root string) error {
	const ro = syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY
	at := func(name string) string { return filepath.Join(root, name) }
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"proc", "proc", "proc", 0, ""},
		{at("proc/sys/net"), "proc/sys/net", "", syscall.MS_BIND, ""}, // the host's own; stays writable
		{"sysfs", "sys", "sysfs", syscall.MS_RDONLY, ""},
		{"dev", "dev", "tmpfs", syscall.MS_NOSUID, "mode=755"},
		{"run", "run", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=755"},
		{"tmp", "tmp", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=1777"},
		{"root", "root", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=700"},
	} {
		if err := syscall.Mount(m.source, at(m.target), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting /%s: %w", m.target, err)
		}
	}
	for _, p := range []string{"proc/sys", "proc/sysrq-trigger"} {
		if _, err := os.Stat(at(p)); errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without it
		}
		if err := syscall.Mount(at(p), at(p), "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("binding /%s: %w", p, err)
		}
		if err := syscall.Mount("", at(p), "", ro, ""); err != nil {
			return fmt.Errorf("making /%s read-only: %w", p, err)
		}
	}
	return mountDevices(at("dev"))
}

// mountDevices gives the host the devices of a container, none of the machine's disks.
func mountDevices(dev string) error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		target := filepath.Join(dev, name)
		if err := os.WriteFile(target, nil, 0o666); err != nil {
			return err
		}
		if err := syscall.Mount("/dev/"+name, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("binding /dev/%s: %w", name, err)
		}
	}
	for link, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join(dev, link)); err != nil {
			return err
		}
	}
	for _, m := range [][3]string{{"pts", "devpts", "newinstance,ptmxmode=0666,mode=620,gid=5"}, {"shm", "tmpfs", "mode=1777"}} {
		target := filepath.Join(dev, m[0])
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(m[1], target, m[1], syscall.MS_NOSUID|syscall.MS_NOEXEC, m[2]); err != nil {
			return fmt.Errorf("mounting /dev/%s: %w", m[0], err)
		}
	}
	return nil
}

// enterHost makes the overlay the root and lets go of this machine's. Putting the old root at the same place as the
// new one needs no directory for it (pivot_root(2), "pivot_root(".", ".")").
func enterHost(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("entering the overlay: pivot_root: %w (is / a mount point? bind-mount the directory onto itself before chroot)", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving this machine's root: %w", err)
	}
	return os.Chdir("/")
}

func removeStale() error {
	for _, pattern := range staleOnHost() {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, p := range found {
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("removing the machine's %s from the host: %w", p, err)
			}
		}
	}
	return nil
}

func makeDirectories(bare bool) error {
	syscall.Umask(0o022)
	for _, d := range []struct {
		path string
		mode os.FileMode
		ours bool
	}{
		{"/etc/ssh/sshd_config.d", 0o755, false},
		{"/etc/sudoers.d", 0o755, false},
		{"/run/sshd", 0o755, false},
		{"/run/lock", 0o1777, false},
		{"/etc/kpssh", 0o755, true},
		{"/opt/kpssh", 0o755, true},
		{"/var/lib/hostwarrant", 0o700, true},
	} {
		if bare && d.ours {
			continue
		}
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return err
		}
	}
	return nil
}

func writeHostFiles(files map[string]File) error {
	for path, f := range files {
		if f.Mode == 0 {
			f.Mode = 0o644
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Content, f.Mode); err != nil {
			return err
		}
		if err := os.Chmod(path, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

// setUser gives the host's own account files the login account, or takes one of the machine's out. "*" is no password
// that anyone could have, and is not "!", which sshd without PAM reads as a closed account. The home is the shim's
// directory: root's, so that the account can put nothing there that sshd or a shell would read.
func setUser(bare bool) error {
	passwd, err := without("/etc/passwd")
	if err != nil {
		return err
	}
	id := freeID(passwd)
	for path, line := range map[string]string{
		"/etc/passwd":  fmt.Sprintf("%s:x:%s:%s:relay login:/opt/kpssh:/bin/sh", hostUser, id, id),
		"/etc/shadow":  hostUser + ":*:20000:0:99999:7:::",
		"/etc/group":   fmt.Sprintf("%s:x:%s:", hostUser, id),
		"/etc/gshadow": hostUser + ":!::",
	} {
		lines, err := without(path)
		if errors.Is(err, fs.ErrNotExist) && path == "/etc/gshadow" {
			continue
		}
		if err != nil {
			return err
		}
		if !bare {
			lines = append(lines, line)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, "shadow") {
			mode = 0o640
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), mode); err != nil {
			return err
		}
	}
	return nil
}

// without reads an account file and leaves out an account of the machine that has the login account's name.
func without(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, hostUser+":") }), nil
}

// freeID is a number of Debian's system range that no account and no group of those lines has.
func freeID(passwd []string) string {
	for id := 990; id > 100; id-- {
		s := strconv.Itoa(id)
		if !slices.ContainsFunc(passwd, func(l string) bool { return strings.Contains(l, ":"+s+":") }) {
			return s
		}
	}
	return "990"
}

func startSSHD() (int, error) {
	p, err := os.StartProcess("/usr/sbin/sshd", []string{"/usr/sbin/sshd", "-D", "-e"}, &os.ProcAttr{
		Env:   []string{"PATH=" + hostPath, "LC_ALL=C"},
		Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("starting sshd: %w", err)
	}
	pid := p.Pid
	if err := p.Release(); err != nil { // reapUntil waits for it
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sshdLimit)
	defer cancel()
	return pid, until(ctx, nil, "sshd to listen", func() error {
		if _, err := startTime(pid); err != nil {
			cancel()
			return errors.New("sshd has ended")
		}
		b, err := os.ReadFile("/proc/net/tcp") // a trial connection would leave its trace in sshd's log
		if err == nil && !bytes.Contains(b, []byte(listening)) {
			err = errors.New("nothing listens on port 22")
		}
		return err
	})
}

// reapUntil reaps whatever becomes an orphan, as the first process of a system does, until sshd ends.
func reapUntil(sshd int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for processes: %w", err)
		case pid == sshd:
			return fmt.Errorf("sshd has ended: exit %d, signal %v", status.ExitStatus(), status.Signal())
		}
	}
}
