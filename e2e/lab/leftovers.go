//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What tests look for where a lab has gone. Processes of a host need not carry the lab's marker: kubelet is started
// with an environment of its own.

// Cgroups are those of a lab's hosts, wherever below the machine's.
func Cgroups(t testing.TB, id string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "hw"+id[:8]) {
			found = append(found, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// NetNS is the network namespace of a process.
func NetNS(t testing.TB, pid int) string {
	t.Helper()
	ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// InNetNS are the processes in any of the namespaces.
func InNetNS(t testing.TB, namespaces ...string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		if ns, err := os.Readlink(f); err == nil && slices.Contains(namespaces, ns) {
			found = append(found, f)
		}
	}
	return found
}
