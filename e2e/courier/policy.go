//go:build linux

package courier

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// RewritePolicy replaces texts in the policy, which must be there, signs and applies it.
func (w *World) RewritePolicy(ctx context.Context, t testing.TB, changes map[string]string) {
	t.Helper()
	policy, err := os.ReadFile(w.PolicyFile())
	must(t, err)
	for old, changed := range changes {
		if !bytes.Contains(policy, []byte(old)) {
			t.Fatalf("the policy does not hold %q:\n%s", old, policy)
		}
		policy = bytes.Replace(policy, []byte(old), []byte(changed), 1)
	}
	must(t, os.WriteFile(w.PolicyFile(), policy, 0o600))
	w.Command(t, "policy", "sign", "-i", w.PolicyFile(), "--key", filepath.Join(w.Keys, "root"), "--replace")
	must(t, w.Product.ApplyPolicy(ctx, w.PolicyFile()))
}
