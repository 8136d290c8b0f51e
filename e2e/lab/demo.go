//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// DemoStateDir is the fixed place of the demo's lab, so that a later process finds it: beside the control plane's
// cache, in $HOSTWARRANT_CACHE, else in hostwarrant/ of the user's cache directory.
func DemoStateDir() (string, error) {
	if dir := os.Getenv("HOSTWARRANT_CACHE"); dir != "" {
		return filepath.Join(dir, "demo"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(dir, "hostwarrant", "demo"), nil
}
