//go:build linux

package lab

import (
	"context"
	"testing"
	"time"
)

// shellLimit bounds one line of shell on a host that others share the machine with.
const shellLimit = 3 * time.Minute

// Shell runs lines of shell as root on the host.
func (h *Host) Shell(t testing.TB, lines string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shellLimit)
	defer cancel()
	r, err := h.Exec(ctx, nil, "sh", "-c", lines)
	if err != nil {
		t.Fatalf("on %s, %s: %v", h.Name, lines, err)
	}
	return r
}

// Must runs lines of shell that have to succeed, and gives what they print.
func (h *Host) Must(t testing.TB, lines string) string {
	t.Helper()
	r := h.Shell(t, lines)
	if r.Code != 0 {
		t.Fatalf("on %s, %s: exit %d, stdout %q, stderr %q", h.Name, lines, r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}
