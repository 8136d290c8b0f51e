//go:build linux

package join

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	pool = courier.Namespace

	// stepLimit bounds what takes seconds, on a busy machine.
	stepLimit = 2 * time.Minute

	takesToken = "KPSSH_BOOTSTRAP_TOKEN required secret re [a-z0-9]{6}[.][a-z0-9]{16}"
	profile    = "tls-bootstrap"

	// waiting is a join script that shows its token, counts its runs and waits until the test lets it go.
	waiting = "echo ran >>/root/ran\nprintf '%s\\n' \"$KPSSH_BOOTSTRAP_TOKEN\"\nprintf '%s' \"$KPSSH_BOOTSTRAP_TOKEN\" >/root/token\n" +
		"until [ -e /root/go ]; do sleep 0.1; done\nrm /root/go\n"
)

// world is the product, in a control plane of its own, with a minter, and a profile whose join script takes a token.
type world struct {
	*courier.World
	minter *product.Program
	flags  []string // of the minter
}

func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	ctx, l := shared.OwnLab(t)
	cp, err := l.StartControlPlane(ctx, lab.ControlPlaneOptions{})
	must(t, err)
	w := &world{World: courier.New(ctx, t, l, cp), flags: flags}
	w.BindBootstrappers(t)
	w.Profile(t, profile, waiting, takesToken)
	w.startMinter(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the minter's log:\n%s", w.minter.Tail(30))
		}
	})
	return w
}

func (w *world) startMinter(t *testing.T) {
	t.Helper()
	w.StartMinter(t, w.flags...)
	w.minter = w.Programs.Minter
}

// join asks for a join of a host under a name.
func (w *world) join(t *testing.T, name, host, node string) {
	t.Helper()
	w.Run(t, name, host, profile, func(r *v1alpha1.HostRun) { r.Spec.NodeName = node })
}

// joined waits until the minter has said that of a run.
func (w *world) joined(t *testing.T, name, reason string) *v1alpha1.HostRun {
	t.Helper()
	return w.Joined(t, name, reason)
}

// running waits until the script of a run waits on its host, and gives its token.
func (w *world) running(t *testing.T, name string, h *lab.Host) string {
	t.Helper()
	w.joined(t, name, token.Issued)
	var value string
	testkit.Eventually(t, stepLimit, "the script of "+name, func() bool {
		text, err := h.ReadFile("/root/token")
		value = string(text)
		return err == nil && strings.HasPrefix(value, w.Read(t, name).Status.TokenID+".")
	})
	return value
}

// goOn lets the script end.
func goOn(t *testing.T, h *lab.Host) {
	t.Helper()
	must(t, h.WriteFile("/root/go", nil, 0o600))
}

// ran is how often the script ran on the host.
func ran(t *testing.T, h *lab.Host) int {
	t.Helper()
	text, err := h.ReadFile("/root/ran")
	if os.IsNotExist(err) {
		return 0
	}
	must(t, err)
	return strings.Count(string(text), "\n")
}

// tokens are the Secrets of tokens of ours that are there, in kube-system and in the pool.
func (w *world) tokens(t *testing.T) []string {
	t.Helper()
	return w.Tokens(t)
}

// nothingLeft waits until no token is left, nor anything that holds a run.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	w.NoTokens(t)
}

// remove deletes runs, and waits until they are gone.
func (w *world) remove(t *testing.T, names ...string) {
	t.Helper()
	args := append([]string{"-n", pool, "delete", "hostrun", "--timeout=120s"}, names...)
	w.kubectl(t, args...)
}

// kubectl must succeed.
func (w *world) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return w.Kubectl(t, args...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
