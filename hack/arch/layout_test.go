package arch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Others rely on these names: scripts, packagers, the pages that link here.
func TestTopLevelNames(t *testing.T) {
	for _, name := range []string{
		"webhook", "signer", "relay", "shim", "internal", "api", "manifests", "policies", "e2e", "docs",
		"go.mod", "Makefile", "Tiltfile", "LICENSE", "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md",
	} {
		if exists(name) {
			continue
		}
		if slices.Contains(awaited(), name) {
			t.Logf("%s is not there yet", name)
			continue
		}
		t.Errorf("%s is missing at the top of the tree", name)
	}
	if len(awaited()) > 0 && whole() {
		t.Error("all that was awaited is there: empty the list in awaited()")
	}
}

// awaited names what is still being written. While any of it is missing, rules that
// need the whole tree only report.
func awaited() []string {
	return nil
}

func whole() bool {
	return !slices.ContainsFunc(awaited(), func(name string) bool { return !exists(name) })
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

// A replace directive makes `go install …@version` refuse the module, and hides what
// version is really built. Modules of tests and tools may need one.
func TestTheModuleReplacesNothing(t *testing.T) {
	for _, replaced := range readGoMod(t, ".").Replace {
		t.Errorf("go.mod replaces %s", replaced.Old.Path)
	}
	if len(readGoMod(t, "e2e/cluster").Replace) == 0 {
		t.Error("e2e/cluster/go.mod has replace directives, and none is seen: the rule above sees nothing either")
	}
}
