package shim

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// caseDeadline bounds one case. The slowest waits about 5 s on an idle machine.
const caseDeadline = 5 * time.Minute

// TestShim runs every test_* function of tests/*.sh against the real shim in a
// mount namespace of its own, under each shell that a host may have as /bin/sh.
func TestShim(t *testing.T) {
	needRootAndTools(t)
	fixtures := makeFixtures(t)
	shells := []string{"dash", "busybox", "bash"}
	if testing.Short() {
		shells = shells[:1]
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases(t) {
				t.Run(strings.TrimPrefix(c.name, "test_"), func(t *testing.T) {
					if strings.HasPrefix(c.name, "test_dash_only_") && shell != "dash" {
						t.Skip("once is enough")
					}
					t.Parallel()
					runCase(t, fixtures, shell, c)
				})
			}
		})
	}
}

type shellCase struct{ file, name string }

// cases lists the functions in file and line order.
func cases(t *testing.T) []shellCase {
	t.Helper()
	files, err := filepath.Glob("tests/*.sh")
	if err != nil || len(files) < 2 {
		t.Fatalf("no test files in tests/: %v", err)
	}
	function := regexp.MustCompile(`(?m)^(test_[a-z0-9_]+)\(\)`)
	var found []shellCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range function.FindAllSubmatch(text, -1) {
			found = append(found, shellCase{filepath.Base(file), string(m[1])})
		}
	}
	return found
}

// runCase starts the case in new mount and process-id namespaces: whatever it
// leaves running ends with it.
func runCase(t *testing.T, fixtures, shell string, c shellCase) {
	t.Helper()
	cmd := exec.CommandContext(deadline(t), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"--propagation", "private", "--", "/bin/dash", "tests/enter", shell, c.file, c.name)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "FIXTURES=" + fixtures, "LC_ALL=C", "CORPUS=" + corpus(t)}
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if reason, skipped := strings.CutPrefix(strings.TrimSpace(out.String()), "SKIP: "); skipped {
		testkit.Missing(t, "%s", reason)
	}
	if err != nil {
		t.Errorf("%s in %s: %v\n%s", c.name, c.file, err, out.String())
	}
}
