package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestKubectlCallsThePlugin(t *testing.T) {
	kubectl := testkit.Tool(t, "kubectl")
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "kubectl-hostwarrant"), "./signer")
	build.Dir = testkit.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink("kubectl-hostwarrant", filepath.Join(dir, "kubectl_complete-hostwarrant")); err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"hostwarrant version":            "hostwarrant ",
		"hostwarrant sign --help":        "  kubectl hostwarrant sign PATH",
		"__complete hostwarrant insp":    "inspect\t",
		"plugin list":                    filepath.Join(dir, "kubectl-hostwarrant"),
		"hostwarrant help sshsig":        "Strict SSHSIG\n",
		"hostwarrant sig verify --help ": "  kubectl hostwarrant sig verify ",
	} {
		cmd := exec.Command(kubectl, strings.Fields(call)...)
		cmd.Env = append(os.Environ(), "PATH="+dir, "KUBECONFIG="+filepath.Join(dir, "none"), "HOME="+dir)
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("kubectl %s: want %q, got %v: %s", call, want, err, out)
		}
	}
	cmd := exec.Command(kubectl, "hostwarrant", "verify")
	cmd.Env = append(os.Environ(), "PATH="+dir, "HOME="+dir)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("a mistake in usage must end with 2 through kubectl too: %v", err)
	}
}
