//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Options of New.
type Options struct {
	Helper   Helper // from HelperMain; required
	StateDir string // empty: a new one in the temporary directory
	Root     string // the checkout; empty: found from the working directory upwards
}

// Lab is one bridge with everything that was started on it.
type Lab struct {
	state    *state
	id       string
	root     string
	helper   Helper
	net      *network
	watchdog *watchdog

	mu       sync.Mutex
	closed   bool
	programs []*Program
	silent   []*Silent
	nextHost int
}

// New makes a lab without control plane and hosts. On failure nothing is left.
func New(ctx context.Context, o Options) (*Lab, error) {
	if missing := Requirements(); len(missing) > 0 {
		return nil, missingError(missing)
	}
	root, err := findRoot(o.Root)
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, fmt.Errorf("making the lab's id: %w", err)
	}
	s, err := createState(o.StateDir, id)
	if err != nil {
		return nil, err
	}
	l := &Lab{state: s, id: id, root: root, helper: o.Helper, nextHost: 10}
	if l.watchdog, err = startWatchdog(o.Helper, s); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if l.net, err = createNetwork(ctx, s, id); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// errClosed answers every start after Close; nothing must come into being then, not even a directory.
func (l *Lab) errClosed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("the lab is closed")
	}
	return nil
}

// ID is the lab's instance id. Everything the lab makes carries it in its name or environment.
func (l *Lab) ID() string { return l.id }

// StateDir is where logs, keys and kubeconfigs are.
func (l *Lab) StateDir() string { return l.state.dir }

// Root is the checkout.
func (l *Lab) Root() string { return l.root }

// Addr is the address of the bridge: this machine as the hosts and the API server see it.
func (l *Lab) Addr() netip.Addr { return l.net.addr }

// Prefix is the lab's /24.
func (l *Lab) Prefix() netip.Prefix { return l.net.prefix }

// Detach lets the lab live on when this process ends; it is taken down with Down. What lives in this process, silent
// hosts, still ends with it.
func (l *Lab) Detach() error { return l.watchdog.dismiss() }

// Close takes everything down and removes the state directory. It may be called more than once.
func (l *Lab) Close() error {
	l.mu.Lock()
	l.closed = true
	programs, silent := l.programs, l.silent
	l.programs, l.silent = nil, nil
	l.mu.Unlock()
	var errs []error
	for _, s := range silent {
		errs = append(errs, s.Close())
	}
	if err := Down(l.state.dir); err != nil {
		// The watchdog stays and tries again when this process ends.
		return errors.Join(append(errs, err)...)
	}
	for _, p := range programs {
		<-p.done
	}
	return errors.Join(append(errs, l.watchdog.dismiss())...)
}

// Logs returns the last lines of every log, for the report of a failure.
func (l *Lab) Logs(lines int) string {
	names, err := filepath.Glob(l.state.path("log", "*.log"))
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, n := range names {
		if t := tail(n, lines); t != "" {
			fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(n), t)
		}
	}
	return b.String()
}

// modulePath is how the checkout is recognised.
const modulePath = "module github.com/hostwarrant/hostwarrant\n"

func findRoot(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if b, err := os.ReadFile(filepath.Join(d, "go.mod")); err == nil && strings.HasPrefix(string(b), modulePath) {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("finding the checkout: no go.mod of hostwarrant in %s or above it (run it inside the checkout)", dir)
		}
	}
}
