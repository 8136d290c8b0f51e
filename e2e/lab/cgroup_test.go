//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	hybridMounts = `30 22 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 30 0:30 /docker/a /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	hybridOwn = "9:name=systemd:/init.scope\n4:memory:/docker/a/b\n1:cpu,cpuacct:/\n0::/\n"
)

func TestCgroupsAreBelowThoseOfTheProgram(t *testing.T) {
	got, err := cgroups(hybridMounts, hybridOwn, "hw1")
	if err != nil {
		t.Fatal(err)
	}
	want := []cgroup{
		{"/sys/fs/cgroup/cpu,cpuacct/hw1", "cpu,cpuacct", "cgroup", "cpu,cpuacct"},
		{"/sys/fs/cgroup/memory/b/hw1", "memory", "cgroup", "memory"},
		{"/sys/fs/cgroup/systemd/init.scope/hw1", "systemd", "cgroup", "none,name=systemd"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := cgroups(hybridMounts, "0::/\n", "hw1"); err == nil {
		t.Error("a hierarchy that this program is not in: got no error")
	}
	if _, err := cgroups("", "", "hw1"); err == nil {
		t.Error("no cgroups at all: got no error")
	}
}

// TestCgroupsOfVersionTwoAreWhereControllersAre: a session's own cgroup hands none on, one above it does.
func TestCgroupsOfVersionTwoAreWhereControllersAre(t *testing.T) {
	top := t.TempDir()
	own := filepath.Join(top, "user.slice", "session.scope")
	control := func(dir, controllers string) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	control(own, "")
	control(filepath.Dir(own), "memory pids")
	mounts := "30 22 0:27 / " + top + " rw - cgroup2 cgroup2 rw\n"
	if _, err := cgroups(mounts, "0::/user.slice/session.scope\n", "hw1"); err == nil || !strings.Contains(err.Error(), "subtree_control") {
		t.Errorf("no cgroup with controllers: got %v", err)
	}
	control(top, "cpuset cpu io memory pids")
	got, err := cgroups(mounts, "0::/user.slice/session.scope\n", "hw1")
	if diff := cmp.Diff([]cgroup{{Dir: filepath.Join(top, "hw1"), Type: "cgroup2"}}, got); err != nil || diff != "" {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
}
