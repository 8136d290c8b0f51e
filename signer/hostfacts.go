package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/hostsetup"
)

// asRoot runs a script from stdin as root, on a host that somebody logged in to.
const asRoot = `if [ "$(id -u)" = 0 ]; then exec /bin/sh -s; else exec sudo -n /bin/sh -s; fi`

// remote says how another host is reached: by the system's own ssh, as its user has set it up.
type remote struct{ destination, config string }

func (r remote) check() error {
	// A destination with a dash in front would be an option.
	if strings.HasPrefix(r.destination, "-") {
		return usage("--ssh is [USER@]HOST, not %.80q", r.destination)
	}
	if r.config != "" && r.destination == "" {
		return usage("--ssh-config goes with --ssh")
	}
	return nil
}

func (r remote) command(ctx context.Context) *exec.Cmd {
	if r.destination == "" {
		return exec.CommandContext(ctx, "/bin/sh", "-s")
	}
	args := []string{"-T"}
	if r.config != "" {
		args = append(args, "-F", r.config)
	}
	return exec.CommandContext(ctx, "ssh", append(args, "--", r.destination, asRoot)...)
}

// facts asks a host what is so on it.
func (r remote) facts(ctx context.Context, script []byte) (*hostsetup.Facts, error) {
	cmd := r.command(ctx)
	stdout, stderr := &bounded{limit: hostsetup.MaxFacts}, &bounded{limit: hostsetup.MaxFacts}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(script), stdout, stderr
	if err := cmd.Run(); err != nil {
		return nil, undecided(fmt.Errorf("asking the host: %v: %s", err, strings.TrimSpace(stderr.kept.String())))
	}
	f, err := hostsetup.ParseFacts(stdout.kept.Bytes())
	if err != nil {
		return nil, undecided(decision.From(err))
	}
	return f, nil
}

// bounded keeps what a host sends within bounds. The buffer is no part of what others see of it: its
// ReadFrom would take everything.
type bounded struct {
	kept  bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.limit {
		return 0, errors.New("the host sends too much")
	}
	return b.kept.Write(p)
}
