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
	"strings"
)

// binaries is where the control plane's programs are.
type binaries struct {
	dir string
}

// findBinaries takes KUBEBUILDER_ASSETS when it is set, else the cache that e2e/cluster/build.sh fills. It never
// builds: that takes minutes, and a test has a time limit.
func findBinaries(ctx context.Context, root string) (*binaries, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		cmd := exec.CommandContext(ctx, "sh", filepath.Join(root, "e2e/cluster/build.sh"), "--print")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("finding the control plane: %s (build it, once: make control-plane)", strings.TrimSpace(stderr.String()))
		}
		dir = strings.TrimSpace(string(out))
	}
	b := &binaries{dir: dir}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if !b.has(name) {
			return nil, fmt.Errorf("finding the control plane: no %s in %s (build it: unset KUBEBUILDER_ASSETS and run make control-plane)", name, dir)
		}
	}
	return b, nil
}

func (b *binaries) path(name string) string { return filepath.Join(b.dir, name) }

func (b *binaries) has(name string) bool {
	i, err := os.Stat(b.path(name))
	return err == nil && i.Mode().IsRegular() && i.Mode()&0o111 != 0
}

// findKubectl is for a cluster of the user's own: theirs from PATH, else the one built here.
func findKubectl(ctx context.Context, root string) (string, error) {
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	b, err := findBinaries(ctx, root)
	if err != nil {
		return "", errors.Join(errors.New("finding kubectl: none in PATH"), err)
	}
	return b.path("kubectl"), nil
}
