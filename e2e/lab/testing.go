//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// testStartLimit bounds what a test waits for a lab, a control plane or a host on a busy machine.
const testStartLimit = 6 * time.Minute

// Shared is one lab with at most one control plane for the tests of a package; the first test that asks starts it:
//
//	var shared lab.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestX(t *testing.T) {
//		cp := shared.ControlPlane(t)
//		host := shared.Host(t, lab.HostOptions{Name: "host-a"})
type Shared struct {
	// Options of the control plane, set before the first test asks for it.
	Options ControlPlaneOptions

	mu     sync.Mutex
	helper Helper
	lab    *Lab
	labErr error
	cp     *ControlPlane
	cpErr  error
}

// Main runs the tests of a package and takes the lab down after them.
func (s *Shared) Main(m *testing.M) int {
	helper, code, ran := HelperMain(os.Args)
	if ran {
		return code
	}
	s.helper = helper
	code = m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lab == nil {
		return code
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the ends of the lab's logs:\n%s", s.lab.Logs(10))
	}
	if err := s.lab.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Helper is for tests that make labs of their own with New.
func (s *Shared) Helper() Helper { return s.helper }

// Lab returns the package's lab. Where a lab cannot run the test is skipped, or fails under REQUIRE_TOOLS=1 or
// CI=true.
func (s *Shared) Lab(t testing.TB) *Lab {
	t.Helper()
	NeedLab(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lab == nil && s.labErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), testStartLimit)
		defer cancel()
		s.lab, s.labErr = New(ctx, Options{Helper: s.helper})
	}
	if s.labErr != nil {
		t.Fatal(s.labErr)
	}
	return s.lab
}

// OwnLab is a lab that the test does not share, for what would disturb others. It ends with the test, and ctx bounds its start.
func (s *Shared) OwnLab(t testing.TB) (context.Context, *Lab) {
	t.Helper()
	NeedLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), testStartLimit)
	t.Cleanup(cancel)
	l, err := New(ctx, Options{Helper: s.helper})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the ends of the logs:\n%s", l.Logs(25))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return ctx, l
}

// ControlPlane returns the package's control plane.
func (s *Shared) ControlPlane(t testing.TB) *ControlPlane {
	t.Helper()
	l := s.Lab(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cp == nil && s.cpErr == nil {
		ctx, cancel := context.WithTimeout(context.Background(), testStartLimit)
		defer cancel()
		s.cp, s.cpErr = l.StartControlPlane(ctx, s.Options)
	}
	if s.cpErr != nil {
		t.Fatal(s.cpErr)
	}
	return s.cp
}

// Host starts a host that lives as long as the test.
func (s *Shared) Host(t testing.TB, o HostOptions) *Host {
	t.Helper()
	l := s.Lab(t)
	ctx, cancel := context.WithTimeout(context.Background(), testStartLimit)
	defer cancel()
	h, err := l.StartHost(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", h.Name, h.Log(20))
		}
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// NeedLab skips the test where a lab cannot run, and fails it under REQUIRE_TOOLS=1 or CI=true.
func NeedLab(t testing.TB) {
	t.Helper()
	if missing := Requirements(); len(missing) > 0 {
		testkit.Missing(t, "%v", missingError(missing))
	}
}
