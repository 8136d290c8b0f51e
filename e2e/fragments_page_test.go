//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/guide"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The page on fragments, from the first key to a bundle that recovers, as somebody who copies its commands sees it.
func TestTheFragmentsPageInACRD(t *testing.T) {
	w, d := newFragmentsPage(t, false)
	w.followsFragmentsPage(t, d)
	says(t, d.Follow(t, "In the cluster", 2), `denied the request: `, "SignerScope: ", "; hint: ")
	says(t, d.Follow(t, "In the cluster", 3), `denied the request: `, "Unsigned: ", "; hint: ", "Assembled")
	w.recoversByFragmentsPage(t, d)
}

func TestTheFragmentsPageBehindAnAggregatedAPIServer(t *testing.T) {
	w, d := newFragmentsPage(t, true)
	w.followsFragmentsPage(t, d)
	d.Follow(t, "In the cluster", 2)
	w.says(t, "Assembled", "False SignerScope")
	d.Follow(t, "In the cluster", 3)
	w.says(t, "Assembled", "False Unsigned")
	w.says(t, "Degraded", "True LastCompositeKept")
	w.recoversByFragmentsPage(t, d)
}

// newFragmentsPage makes the page's keys and files, and installs the product under its root.
func newFragmentsPage(t *testing.T, aggregated bool) (*bundleWorld, *guide.Desk) {
	t.Helper()
	d := &guide.Desk{Dir: t.TempDir(), Page: guide.Read(t, filepath.Join(testkit.Root(t), "docs", "fragments.md")), Instead: strings.NewReplacer("prod-1", "e2e")}
	for _, block := range []struct {
		heading string
		n       int
	}{{"Keys", 0}, {"Keys", 1}, {"The vendor", 0}, {"The operator", 0}, {"The policy", 0}, {"What the cluster would say", 0}, {"What the cluster would say", 1}} {
		d.Follow(t, block.heading, block.n)
	}
	root, err := os.ReadFile(filepath.Join(d.Dir, "root.pub"))
	must(t, err)
	w := installBundles(t, aggregated, root, pool)
	d.KnowCluster(t, w.cp.KubectlPath, w.cp.Kubeconfig)
	d.Run(t, "hostwarrant policy pack trust-policy.yaml -o asked.yaml")
	eventually(t, "the webhook to be called", func() bool {
		_, err := d.Try(t, "kubectl apply --server-side --dry-run=server -f asked.yaml")
		return err == nil
	})
	return w, d
}

func (w *bundleWorld) followsFragmentsPage(t *testing.T, d *guide.Desk) {
	t.Helper()
	d.Follow(t, "In the cluster", 0)
	says(t, d.Follow(t, "In the cluster", 1), "is under the root", "Merkle Root:", "redis-base", "True")
	w.becomes(t, "/usr/bin/redis-server /usr/bin/redis-cli")
}

func (w *bundleWorld) recoversByFragmentsPage(t *testing.T, d *guide.Desk) {
	t.Helper()
	w.stays(t, "/usr/bin/redis-server /usr/bin/redis-cli")
	d.Follow(t, "In the cluster", 4)
	w.says(t, "Assembled", "True Assembled")
	w.says(t, "Degraded", "False AsAssembled")
}

// says wants each of these in what was printed.
func says(t *testing.T, out string, want ...string) {
	t.Helper()
	t.Log(out)
	for _, s := range want {
		if !strings.Contains(out, s) {
			t.Errorf("want %q in\n%s", s, out)
		}
	}
}
