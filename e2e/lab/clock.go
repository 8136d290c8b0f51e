//go:build linux

package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// SetClock gives the host another time. It is a fake: it puts a script in the place of the host's own /usr/bin/date that
// answers what the shim asks with a constant, since no namespace has a clock of its own. The zero time puts the real one
// back. What ssh-keygen itself takes for now is not changed.
func (h *Host) SetClock(t testing.TB, at time.Time) {
	t.Helper()
	const fake, kept = "/usr/bin/date", "/usr/bin/date.real"
	h.Must(t, "[ -e "+kept+" ] || cp "+fake+" "+kept)
	if at.IsZero() {
		h.Must(t, "cp -f "+kept+" "+fake)
		return
	}
	script := fmt.Sprintf("#!/bin/sh\ncase $* in +%%s) echo %d ;; *) exec %s \"$@\" ;; esac\n", at.Unix(), kept)
	if err := h.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(h.Must(t, "/bin/date +%s")); got != fmt.Sprint(at.Unix()) {
		t.Fatalf("the clock of %s is at %s", h.Name, got)
	}
}
