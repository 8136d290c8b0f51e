package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// SKDummy is the path of OpenSSH's own software stand-in for a FIDO2 token, built on first use.
func SKDummy() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("no caller information")
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(file), "..", "hack", "sk-dummy"))
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("hack/sk-dummy: %v", err)
	}
	return strings.TrimSpace(string(path)), nil
}
