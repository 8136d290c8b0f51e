//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroupLimit bounds the removal of cgroups: the kernel lets go of them a moment after their last process has ended.
const cgroupLimit = 10 * time.Second

// cgroup is the root of one hierarchy of a host that runs kubelet: a directory of this machine's, below the cgroup
// that this program is in where the kernel allows that, so that limits on the program hold for its hosts too.
type cgroup struct {
	Dir    string // on this machine
	Target string // on the host, below /sys/fs/cgroup; empty: that itself
	Type   string // cgroup, or cgroup2
	Data   string // of mount(2)
}

// v2Needed are the controllers that kubelet refuses to run without.
func v2Needed() []string { return []string{"cpu", "cpuset", "memory", "pids"} }

// cgroups reads where the hierarchies of version 1 are mounted and what this process is in, or, where there are none,
// that of version 2. The name is that of the host's directory in each.
func cgroups(mountinfo, own, name string) ([]cgroup, error) {
	var v1 []cgroup
	var v2, top string
	for line := range strings.Lines(mountinfo) {
		mount, source, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		f, s := strings.Fields(mount), strings.Fields(source)
		if !ok || len(f) < 6 || len(s) < 3 {
			continue
		}
		root, at := f[3], f[4]
		switch s[0] {
		case "cgroup":
			controllers, dir, found := ownCgroup(own, strings.Split(s[2], ","))
			if !found {
				return nil, fmt.Errorf("finding this program's cgroup in the hierarchy at %s: /proc/self/cgroup does not name it", at)
			}
			data := controllers
			if strings.HasPrefix(controllers, "name=") {
				data = "none," + controllers
			}
			v1 = append(v1, cgroup{Dir: filepath.Join(at, below(dir, root), name), Target: filepath.Base(at), Type: "cgroup", Data: data})
		case "cgroup2":
			_, dir, _ := ownCgroup(own, []string{""})
			v2, top = filepath.Join(at, below(dir, root)), at
		}
	}
	switch {
	case v1 != nil:
		return v1, nil // beside these a hierarchy of version 2 has no controllers
	case v2 == "":
		return nil, errors.New("finding cgroups: none is mounted")
	}
	parent := withControllers(v2, top)
	if parent == "" {
		return nil, fmt.Errorf("finding a cgroup for a host with kubelet: none from %s up to %s hands on %s (see its cgroup.subtree_control)", v2, top, strings.Join(v2Needed(), ", "))
	}
	return []cgroup{{Dir: filepath.Join(parent, name), Type: "cgroup2"}}, nil
}

// ownCgroup finds the line of /proc/self/cgroup ("4:cpu,cpuacct:/path") whose controllers are all among the options.
func ownCgroup(own string, options []string) (controllers, dir string, found bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) < 3 {
			continue
		}
		missing := slices.ContainsFunc(strings.Split(f[1], ","), func(c string) bool { return !slices.Contains(options, c) })
		if !missing {
			return f[1], f[2], true
		}
	}
	return "", "", false
}

// below is the path as seen in a mount that shows the hierarchy from root on.
func below(path, root string) string {
	if rest, ok := strings.CutPrefix(path, root); ok {
		return rest
	}
	return path
}

// withControllers goes up from a cgroup to one whose children get all controllers that kubelet needs. A cgroup of
// version 2 that holds processes, such as that of this program, hands none on.
func withControllers(dir, top string) string {
	for ; ; dir = filepath.Dir(dir) {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		has := strings.Fields(string(b))
		if err == nil && !slices.ContainsFunc(v2Needed(), func(c string) bool { return !slices.Contains(has, c) }) {
			return dir
		}
		if dir == top || dir == "/" {
			return ""
		}
	}
}

// makeCgroups makes a host's cgroups; with an error, those that may have been made.
func (l *Lab) makeCgroups(name string) ([]cgroup, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	all, err := cgroups(string(mountinfo), string(own), name)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if err := l.state.record(entry{Kind: kindCgroup, Name: c.Dir}); err != nil {
			return all, err
		}
		if err := makeCgroup(c.Dir); err != nil {
			return all, fmt.Errorf("making the cgroup %s: %w", c.Dir, err)
		}
	}
	return all, nil
}

// makeCgroup makes one. In the hierarchy cpuset of version 1 nothing runs in a new cgroup before it is told where.
func makeCgroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.clone_children")); errors.Is(err, fs.ErrNotExist) {
			return nil // version 2 inherits
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644)
}

// removeCgroup removes a cgroup of a lab with those that were made in it. Its processes have ended.
func removeCgroup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, cgroupLimit)
	defer cancel()
	return until(ctx, nil, "the cgroup "+dir+" to empty", func() error {
		var all []string
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, p)
			}
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, p := range slices.Backward(all) {
			if rerr := syscall.Rmdir(p); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("%s: %w", p, rerr))
			}
		}
		return err
	})
}
