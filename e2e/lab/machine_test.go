//go:build linux

package lab_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// machine is what a lab must leave as it found it. Other labs may run on the machine meanwhile, so links, mounts,
// processes and namespaces are those of one lab: by its id, its state directory and its hosts' namespaces.
type machine struct {
	Etc                                       map[string]string
	Links, Mounts, Procs, NetNS, Dir, Cgroups []string
}

func look(t *testing.T, id, stateDir string, netns ...string) machine {
	t.Helper()
	return machine{
		Etc: etc(t), Links: links(t, id), Mounts: mounts(t, stateDir), Procs: procs(t, id),
		NetNS: lab.InNetNS(t, netns...), Dir: exists(stateDir), Cgroups: lab.Cgroups(t, id),
	}
}

func etc(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("/etc", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		found[p] = i.Mode().String()
		if !i.Mode().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		found[p] += fmt.Sprintf(" %x", sha256.Sum256(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func links(t *testing.T, id string) []string {
	t.Helper()
	found, err := filepath.Glob("/sys/class/net/hw" + id[:8] + "*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func mounts(t *testing.T, dir string) []string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, dir) || strings.Contains(line, "hostwarrant-lab") {
			found = append(found, line)
		}
	}
	return found
}

func procs(t *testing.T, id string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("HOSTWARRANT_LAB="+id)) {
			found = append(found, f)
		}
	}
	return found
}

func exists(path string) []string {
	if _, err := os.Lstat(path); err == nil {
		return []string{path}
	}
	return nil
}

// eventually waits until a condition holds: until it has nothing to complain about.
func eventually(t *testing.T, complaint func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		c := complaint()
		if c == "" {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal(c)
		}
	}
}
