package shim

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func needRootAndTools(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Missing(t, "the shim's tests mount in a namespace of their own and need root")
	}
	needTools(t, "unshare", "dash", "busybox", "bash", "ssh-keygen", "flock", "setsid", "sudo")
}

func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			testkit.Missing(t, "%s is missing: apt-get install dash busybox-static bash openssh-server sudo util-linux shellcheck", tool)
		}
	}
}

// corpus is the public SSHSIG test data beside the repository, or "" where a
// checkout stands alone.
func corpus(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../shared/corpus/sshsig")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("test data missing at ../shared/corpus/sshsig of the repository's parent")
	}
	return ""
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), caseDeadline)
	t.Cleanup(cancel)
	return ctx
}
