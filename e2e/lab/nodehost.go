//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// kubeletPath is where a host with Node has kubelet.
const kubeletPath = "/usr/local/bin/kubelet"

// nodeConfig is what a host needs beyond sshd to run containerd and kubelet.
type nodeConfig struct {
	Kubelet string // file of this machine
	Cgroups []cgroup
}

// nodeSysctls are the settings of the whole machine that kubelet sets (setupKernelTunables in its
// pkg/kubelet/cm/container_manager_linux.go), by what it wants to read there.
func nodeSysctls() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// findKubelet finds the kubelet that e2e/cluster/build.sh --kubelet has built. It never builds: that takes minutes, and
// a test has a time limit.
func findKubelet(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", filepath.Join(root, "e2e/cluster/build.sh"), "--kubelet", "--print")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding kubelet: %s (build it, once: make kubelet)", strings.TrimSpace(stderr.String()))
	}
	return filepath.Join(strings.TrimSpace(string(out)), "kubelet"), nil
}

// prepareNode makes the host's cgroups and finds kubelet.
func (h *Host) prepareNode(ctx context.Context) (*nodeConfig, error) {
	kubelet, err := findKubelet(ctx, h.lab.root)
	if err != nil {
		return nil, err
	}
	h.cgroups, err = h.lab.makeCgroups(h.link)
	if err != nil {
		return nil, errors.Join(err, h.Stop())
	}
	return &nodeConfig{Kubelet: kubelet, Cgroups: h.cgroups}, nil
}

// enterCgroups moves this process, the first one of a host, into the host's cgroups, makes them what it sees as the roots, and starts
// the program again: a cgroup namespace is a thread's, and begins where the thread is when it makes it.
func enterCgroups(dirs []string) error {
	runtime.LockOSThread()
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("entering a cgroup: %w", err)
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	return syscall.Exec("/proc/self/exe", os.Args[:len(os.Args)-len(dirs)], os.Environ())
}

// mountNode adds what containerd and kubelet need to the host that is being built at root.
func mountNode(dir, root string, c *nodeConfig) error {
	if c == nil {
		return nil
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, d := range []string{"var/lib/containerd", "var/lib/kubelet", "usr/local/bin"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			return err
		}
	}
	// An overlay of containerd's cannot have its layers on the host's own.
	for _, d := range []string{"var/lib/containerd", "var/lib/kubelet"} {
		if err := syscall.Mount("hostwarrant-lab", at(d), "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs at /%s: %w", d, err)
		}
	}
	if err := bindFile(c.Kubelet, at(kubeletPath)); err != nil {
		return err
	}
	// kubelet follows the kernel's log: the host's is empty.
	if err := os.WriteFile(at("dev/kmsg"), nil, 0o600); err != nil {
		return err
	}
	if err := mountSysctls(dir, at("proc/sys")); err != nil {
		return err
	}
	return mountCgroups(at("sys/fs/cgroup"), c.Cgroups)
}

// bindFile shows a file of this machine at a path of the host, to be read.
func bindFile(from, to string) error {
	if err := os.WriteFile(to, nil, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", from, err)
	}
	return syscall.Mount("", to, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

// mountSysctls shows kubelet what it wants to read, so that it has nothing to write; it ends where it cannot.
func mountSysctls(dir, sys string) error {
	for name, value := range nodeSysctls() {
		target := filepath.Join(sys, name)
		if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
			continue // a kernel without it
		}
		file := filepath.Join(dir, strings.ReplaceAll("sysctl/"+name, "/", "-"))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering the machine's %s: %w", name, err)
		}
	}
	return nil
}

// mountCgroups mounts the host's hierarchies. This process is in their roots already.
func mountCgroups(at string, all []cgroup) error {
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	for i, c := range all {
		if i == 0 && c.Target != "" {
			if err := syscall.Mount("hostwarrant-lab", at, "tmpfs", flags, "mode=755"); err != nil {
				return fmt.Errorf("mounting a tmpfs for cgroups: %w", err)
			}
		}
		target := filepath.Join(at, c.Target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", target, c.Type, flags, c.Data); err != nil {
			return fmt.Errorf("mounting the cgroups %s: %w", c.Data, err)
		}
		if c.Type != "cgroup2" {
			continue
		}
		// A cgroup of version 2 with processes in it hands no controllers on, so the host's own go one deeper.
		first := filepath.Join(target, "host")
		if err := errors.Join(os.Mkdir(first, 0o755), os.WriteFile(filepath.Join(first, "cgroup.procs"), []byte("0"), 0)); err != nil {
			return fmt.Errorf("moving into a cgroup: %w", err)
		}
	}
	return nil
}
