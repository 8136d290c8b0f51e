//go:build linux

package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// TestAHostThatCanBeANode has what containerd and kubelet want, and keeps it from the machine.
func TestAHostThatCanBeANode(t *testing.T) {
	l := newLab(t, "")
	overcommit := machineFile(t, "/proc/sys/vm/overcommit_memory")
	h, err := l.StartHost(t.Context(), lab.HostOptions{Name: "host-a", ShimDir: shimDir(t), Node: true})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(h.Must(t, "cat /proc/1/cgroup")) {
		if !strings.HasSuffix(line, ":/\n") && !strings.HasSuffix(line, ":/host\n") {
			t.Errorf("its first process is in %q", line)
		}
	}
	h.Must(t, "for d in /sys/fs/cgroup/*/tasks /sys/fs/cgroup/cgroup.procs; do [ ! -e $d ] || mkdir ${d%/*}/made; done")
	made := lab.Cgroups(t, l.ID())
	for _, dir := range made {
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Errorf("what the host made is not below its directory: %v", err)
		}
	}
	if len(made) == 0 {
		t.Error("the machine has no cgroup of the host")
	}
	h.Must(t, "mkdir /var/lib/containerd/u /var/lib/containerd/w /mnt/l /mnt/o && mount -t overlay o -o lowerdir=/mnt/l,upperdir=/var/lib/containerd/u,workdir=/var/lib/containerd/w /mnt/o")
	h.Must(t, "[ -x /usr/local/bin/kubelet ] && [ -f /dev/kmsg ] && ! touch /usr/local/bin/kubelet && echo 7 >/proc/sys/vm/overcommit_memory")
	if r := h.Shell(t, "echo 1 >/proc/sys/vm/swappiness"); r.Code == 0 {
		t.Error("it can write a setting of the machine")
	}
	if now := machineFile(t, "/proc/sys/vm/overcommit_memory"); now != overcommit {
		t.Errorf("the machine's setting was %q and is %q", overcommit, now)
	}
	if err := h.Stop(); err != nil {
		t.Fatal(err)
	}
	if left := lab.Cgroups(t, l.ID()); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func machineFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
