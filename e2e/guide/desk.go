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
	d.program(t, "ssh", fmt.Sprintf("exec /usr/bin/ssh -F %s/ssh_config \"$@\"\n", d.Dir))
}

// KnowCluster lets kubectl reach a cluster, as its administrator.
func (d *Desk) KnowCluster(t testing.TB, kubectl, kubeconfig string) {
	t.Helper()
	d.program(t, "kubectl", fmt.Sprintf("KUBECONFIG=%s KUBECACHEDIR=%s/kubectl-cache exec %s \"$@\"\n", kubeconfig, d.Dir, kubectl))
}

// program puts a program on the desk that is found before any other of its name.
func (d *Desk) program(t testing.TB, name, script string) {
	t.Helper()
	path := testkit.WriteFile(t, d.Dir, "bin/"+name, []byte("#!/bin/sh\n"+script))
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// Follow runs a block of the page with its preface, and gives all that it prints.
func (d *Desk) Follow(t testing.TB, heading string, n int) string {
	t.Helper()
	return d.Run(t, d.Page.preface(t)+d.Page.Block(t, heading, n))
}

// FollowInTime is Follow for a block that works once the cluster has caught up with what was told it before.
func (d *Desk) FollowInTime(t testing.TB, heading string, n int) string {
	t.Helper()
	commands, out := d.Page.preface(t)+d.Page.Block(t, heading, n), ""
	testkit.Eventually(t, time.Minute, fmt.Sprintf("block %d below %q to work", n, heading), func() bool {
		var err error
		if out, err = d.Try(t, commands); err != nil {
			t.Logf("%v: %s", err, out)
		}
		return err == nil
	})
	return out
}

// Run runs commands as somebody who copies them would.
func (d *Desk) Run(t testing.TB, commands string) string {
	t.Helper()
	out, err := d.Try(t, commands)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	return out
}

// Try runs commands that may fail.
func (d *Desk) Try(t testing.TB, commands string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", d.Instead.Replace(commands))
	cmd.Dir = d.Dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(d.Dir, "bin")+":"+filepath.Dir(testkit.Built(t, "hostwarrant"))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
