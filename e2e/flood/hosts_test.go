//go:build linux

package flood

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// hostsWord as first argument makes the test program the process of the hosts.
const hostsWord = "hostwarrant-flood-hosts"

// Lines of the hosts' process, beside "script RUN-ID".
const (
	ready     = "ready"
	connected = "connected"
)

// address is that of a host: each has one of the loopback network, and so the usual port.
func address(n int) string { return fmt.Sprintf("127.66.%d.%d", n/250, 1+n%250) }

// startHosts starts a process with that many hosts, whose scripts take that long.
func startHosts(t testing.TB, l *lab.Lab, n int, script time.Duration, login, host testkit.Signer) *lab.Program {
	t.Helper()
	dir := t.TempDir()
	testkit.WriteFile(t, dir, "host", host.PEM)
	testkit.WriteFile(t, dir, "login.pub", []byte(login.Line+"\n"))
	p, err := l.StartProgram(fmt.Sprint("hosts-", n), exec.Command("/proc/self/exe", hostsWord, dir, strconv.Itoa(n), script.String()))
	must(t, err)
	t.Cleanup(func() { must(t, p.Stop()) })
	testkit.Eventually(t, stepLimit, "the hosts", func() bool { return slices.Contains(lines(t, p), ready) })
	return p
}

func lines(t testing.TB, p *lab.Program) []string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	must(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// scripts are the run-ids of the scripts that the hosts have begun, in order.
func scripts(t testing.TB, p *lab.Program) []string {
	t.Helper()
	var all []string
	for _, line := range lines(t, p) {
		if id, ok := strings.CutPrefix(line, "script "); ok {
			all = append(all, id)
		}
	}
	return all
}

// hosts is the process of the hosts.
func hosts(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	script, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	key, login, err := keys(args[0])
	if err != nil {
		return err
	}
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort(address(i), "22"))
		if err != nil {
			return err
		}
		fakesshd.Serve(counted{l}, login, func(s *fakesshd.Session) int { return shim(s, script) }, fakesshd.Options{}, key)
	}
	fmt.Println(ready)
	select {}
}

// counted prints a line for each connection that it takes.
type counted struct{ net.Listener }

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		fmt.Println(connected)
	}
	return conn, err
}

func keys(dir string) (ssh.Signer, ssh.PublicKey, error) {
	private, err := os.ReadFile(filepath.Join(dir, "host"))
	if err != nil {
		return nil, nil, err
	}
	line, err := os.ReadFile(filepath.Join(dir, "login.pub"))
	if err != nil {
		return nil, nil, err
	}
	key, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	login, _, _, _, err := ssh.ParseAuthorizedKey(line)
	return key, login, err
}

// shim answers as one that ran the script.
func shim(s *fakesshd.Session, script time.Duration) int {
	text, err := io.ReadAll(s.Stdin)
	if err != nil {
		return int(envelope.ExitInternal)
	}
	e, err := envelope.Decode(text)
	if err != nil || !e.Phase.RunsScript() {
		return int(envelope.ExitEnvelope)
	}
	fmt.Printf("script %s\n", e.RunID)
	time.Sleep(script)
	output := "joined\n"
	trailer := envelope.Trailer{RunID: e.RunID, Phase: e.Phase, Bytes: int64(len(output)), SHA256: sha256.Sum256([]byte(output))}
	if _, err := io.WriteString(s.Stdout, output+trailer.Line()); err != nil {
		return int(envelope.ExitInternal)
	}
	return int(envelope.ExitOK)
}
