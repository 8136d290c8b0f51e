//go:build linux

package kubescape

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// The groups of the kinds: ContainerProfile and SeccompProfile are in the first, Rules and
// RuntimeRuleAlertBinding in the second.
const (
	Profiles = "spdx.softwarecomposition.kubescape.io"
	Rules    = "kubescape.io"
)

//go:embed crds/*.yaml
var crds embed.FS

// InstallCRDs installs the CRDs of the groups and waits until they are served. Beside e2e/storage,
// which owns Profiles, only Rules can be installed.
func InstallCRDs(ctx context.Context, cp *lab.ControlPlane, groups ...string) error {
	return each(groups, func(crd []byte) error {
		if err := kubectl(ctx, cp, crd, "apply", "--server-side", "-f", "-"); err != nil {
			return fmt.Errorf("installing kubescape's CRDs: %w", err)
		}
		if err := kubectl(ctx, cp, crd, "wait", "--for=condition=Established", "--timeout=30s", "-f", "-"); err != nil {
			return fmt.Errorf("waiting for kubescape's CRDs: %w", err)
		}
		return nil
	})
}

// RemoveCRDs removes them and every object of these kinds, and waits until the group is nobody's.
func RemoveCRDs(ctx context.Context, cp *lab.ControlPlane, groups ...string) error {
	err := each(groups, func(crd []byte) error {
		if err := kubectl(ctx, cp, crd, "delete", "--ignore-not-found", "-f", "-"); err != nil {
			return fmt.Errorf("removing kubescape's CRDs: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, group := range groups {
		registration := "apiservice/" + version(group) + "." + group
		if err := kubectl(ctx, cp, nil, "wait", "--for=delete", "--timeout=30s", registration); err != nil {
			return fmt.Errorf("removing kubescape's CRDs: %w", err)
		}
	}
	return nil
}

// version is the one in which a group is served.
func version(group string) string {
	if group == Profiles {
		return "v1beta1"
	}
	return "v1"
}

// each calls do with the CRDs of the groups, file by file.
func each(groups []string, do func(crd []byte) error) error {
	for _, group := range groups {
		files, err := fs.Glob(crds, "crds/"+group+"_*.yaml")
		if err != nil || len(files) == 0 {
			return fmt.Errorf("kubescape has no group %q here (err: %v)", group, err)
		}
		for _, file := range files {
			crd, err := crds.ReadFile(file)
			if err != nil {
				return err
			}
			if err := do(crd); err != nil {
				return err
			}
		}
	}
	return nil
}

func kubectl(ctx context.Context, cp *lab.ControlPlane, stdin []byte, args ...string) error {
	r, err := cp.Kubectl(ctx, bytes.NewReader(stdin), args...)
	if err != nil {
		return err
	}
	if r.Code != 0 {
		return fmt.Errorf("kubectl %s: exit %d: %s", args[0], r.Code, r.Stderr)
	}
	return nil
}
