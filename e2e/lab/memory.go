//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// PeakKiB is the most memory that the process has had since it began, or since ForgetPeak (VmHWM, proc(5)).
func (p *Program) PeakKiB(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmHWM:" {
			n, err := strconv.Atoi(string(f[1]))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// ForgetPeak has PeakKiB begin anew.
func (p *Program) ForgetPeak(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0o200); err != nil {
		t.Fatal(err)
	}
}
