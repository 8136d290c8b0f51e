//go:build linux

package product

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// UpstreamCRDs is the directory of karpenter-provider-ssh's own CRDs, which lies beside a checkout
// and not in it; without it the generated ones are used, but never where nothing may be missing.
func UpstreamCRDs(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(testkit.Root(t)), "shared", "corpus", "upstream", "crds")
	if _, err := os.Stat(dir); err != nil {
		if testkit.Required() {
			t.Fatalf("the CRDs of karpenter-provider-ssh are not there: %v", err)
		}
		return ""
	}
	return dir
}
