//go:build linux

package lab

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every Linux that Go knows.
const tick = 10 * time.Millisecond

// ProcessorTime is what the process has used since it began.
func (p *Program) ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return ticks(t, bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]), 11, 12) // utime and stime, counted from state
}

// MachineTime is what all processes of the machine, the kernel included, have used since it was switched on.
func MachineTime(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	return ticks(t, bytes.Fields(line), 1, 2, 3, 6, 7) // all but idle, iowait and what other machines took
}

func ticks(t testing.TB, fields [][]byte, at ...int) time.Duration {
	t.Helper()
	sum := int64(0)
	for _, i := range at {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * tick
}

// Programs are those that were started and may still run, the control plane's included.
func (l *Lab) Programs() []*Program {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.programs)
}
