package guide

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// Desk is where an operator sits: a directory with files, and programs that are found first.
type Desk struct {
	Dir  string
	Page *Page
	// Instead are values of the page and what stands for them here.
	Instead *strings.Replacer
}

// limit bounds a block of commands on a machine that is busy.
const limit = 3 * time.Minute

// sshConfig is the operator's. A setup has sshd read its configuration again, which takes a moment.
const sshConfig = `Host %[1]s
	HostName %[2]s
	IdentityFile %[3]s/operator
	UserKnownHostsFile %[3]s/known_hosts
	BatchMode yes
	ConnectionAttempts 20
	LogLevel ERROR
`

// KnowHost lets ssh reach a host by the name that the page gives it, with the key of the file operator.
func (d *Desk) KnowHost(t testing.TB, name, address, knownHostLine string) {
	t.Helper()
	testkit.WriteFile(t, d.Dir, "known_hosts", []byte(knownHostLine+"\n"))
	testkit.WriteFile(t, d.Dir, "ssh_config", fmt.Appendf(nil, sshConfig, name, address, d.Dir))
	program := testkit.WriteFile(t, d.Dir, "bin/ssh", fmt.Appendf(nil, "#!/bin/sh\nexec /usr/bin/ssh -F %s/ssh_config \"$@\"\n", d.Dir))
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Follow runs a block of the page with its preface, and gives all that it prints.
func (d *Desk) Follow(t testing.TB, heading string, n int) string {
	t.Helper()
	return d.Run(t, d.Page.preface(t)+d.Page.Block(t, heading, n))
}

// Run runs commands as somebody who copies them would.
func (d *Desk) Run(t testing.TB, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", d.Instead.Replace(commands))
	cmd.Dir = d.Dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(d.Dir, "bin")+":"+filepath.Dir(testkit.Built(t, "hostwarrant"))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	return string(out)
}
