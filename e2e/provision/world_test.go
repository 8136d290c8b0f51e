//go:build linux

package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// commandLimit bounds one command on a host that others share the machine with.
const commandLimit = 3 * time.Minute

// world has what an operator has: roots, a signer, a policy, a release, and the relay's login key.
type world struct {
	dir    string
	root   testkit.Signer
	signer testkit.Signer
	login  testkit.Signer
}

// newWorld writes all of it to files. The policy's times are real: hosts judge by their own clocks.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		dir: t.TempDir(), root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), login: testkit.NewSigner(t, "ed25519"),
	}
	shim, err := os.ReadFile(filepath.Join(shared.Lab(t).Root(), "shim", "kpssh-shim"))
	if err != nil {
		t.Fatal(err)
	}
	document := w.document(w.signer)
	files := testkit.Release(t, shim)
	maps.Copy(files, map[string]string{
		"root.pub": w.root.Line + "\n", "login.pub": w.login.Line + "\n", "policy.yaml": document,
		"policy.yaml.sig": testkit.Sign(t, w.root, "hostwarrant-policy", []byte(document)),
	})
	for name, text := range files {
		testkit.WriteFile(t, w.dir, name, []byte(text))
	}
	return w
}

// document is a policy for the lab's cluster whose signers are the given ones.
func (w *world) document(signers ...testkit.Signer) string {
	now := time.Now().UTC().Truncate(time.Second)
	var b strings.Builder
	fmt.Fprintf(&b, `version: 1
clusters: {lab-1: {endpoints: ["https://10.9.8.7:6443"], caSHA256: ["%x"]}}
issued: %q
expires: %q
mode: enforce
rootVersion: 1
joinProfiles:
  requireWarrant: false
  maxValidity: 90d
  thresholds: {install: 1, join: 1, leave: 1, uninstall: 1}
  hosts:
    users: [kpssh]
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {bm: ["*"]}
    namespaces: {pool: {classes: [bm], nodeNames: ["*"]}}
  signers:
`, sha256.Sum256([]byte("CA")), now.Add(-time.Hour).Format(time.RFC3339), now.Add(240*time.Hour).Format(time.RFC3339))
	for i, s := range signers {
		fmt.Fprintf(&b, "  - {name: signer-%d, key: %q}\n", i, s.Line)
	}
	b.WriteString("floors: {tls-bootstrap: 40, \"web-*\": 1}\n")
	return b.String()
}

// flags describe the hosts; dir is where the machine that runs the command has the files.
func (w *world) flags(t *testing.T, dir string) []string {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"--policy", at("policy.yaml"), "--root", at("root.pub"), "--cluster", "lab-1", "--class", "bm", "--warrant", "optional",
		"--login-key", at("login.pub"), "--from", shared.Lab(t).Addr().String(), "--checksums", at("SHA256SUMS"), "--release-key", at("release.pub"),
	}
}

func program(t *testing.T) string {
	t.Helper()
	return testkit.Built(t, "hostwarrant")
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// hostwarrant calls the command on this machine.
func (w *world) hostwarrant(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errs, w.dir
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// read gives a file that the operator has.
func (w *world) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// provision renders the setup, or with --remove what undoes it.
func (w *world) provision(t *testing.T, args ...string) string {
	t.Helper()
	r := w.hostwarrant(t, append([]string{"host", "provision"}, args...)...)
	if r.code != 0 {
		t.Fatalf("host provision %q: exit %d, %s", args, r.code, r.err)
	}
	return r.out
}

var hostNumber struct {
	sync.Mutex
	n int
}

// bare starts a host that nobody set up, with the program and the operator's public files on it.
func (w *world) bare(t *testing.T, files map[string]lab.File) *lab.Host {
	t.Helper()
	hostNumber.Lock()
	hostNumber.n++
	name := fmt.Sprintf("bare-%d", hostNumber.n)
	hostNumber.Unlock()
	all := map[string]lab.File{"/root/.ssh/authorized_keys": {Content: []byte(w.login.Line + "\n"), Mode: 0o600}}
	for path, f := range files {
		all[path] = f
	}
	h := shared.Host(t, lab.HostOptions{Name: name, Bare: true, Files: all})
	binary, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	put(t, h, "/usr/local/bin/hostwarrant", binary, 0o755)
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		put(t, h, "/root/w/"+e.Name(), text, 0o644)
	}
	return h
}

func put(t *testing.T, h *lab.Host, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := h.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// on runs a line of shell as root on a host.
func on(t *testing.T, h *lab.Host, line string) result {
	t.Helper()
	r := h.Shell(t, line)
	return result{r.Code, r.Stdout, r.Stderr}
}

// check asks the host about itself, on the host.
func (w *world) check(t *testing.T, h *lab.Host, args ...string) result {
	t.Helper()
	return on(t, h, "hostwarrant host check "+strings.Join(quoted(append(w.flags(t, "/root/w"), args...)), " "))
}

func quoted(words []string) []string {
	for i, word := range words {
		words[i] = "'" + word + "'"
	}
	return words
}

func wantGreen(t *testing.T, r result) {
	t.Helper()
	if r.code != 0 || !strings.HasSuffix(r.out, ": as trust policy 1 says\n") {
		t.Errorf("want a host that is as the policy says: exit %d, stdout %q, stderr %q", r.code, r.out, r.err)
	}
}

// setUp is a host that the script set up.
func (w *world) setUp(t *testing.T) *lab.Host {
	t.Helper()
	h := w.bare(t, nil)
	put(t, h, "/root/setup.sh", []byte(w.provision(t, w.flags(t, w.dir)...)), 0o700)
	h.Must(t, "/root/setup.sh")
	return h
}

// send opens a session of the account and gives it an envelope.
func (w *world) send(t *testing.T, h *lab.Host, envelope string) result {
	t.Helper()
	client := w.dial(t, h)
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = strings.NewReader(envelope), &out, &errs
	code := 0
	var exit *ssh.ExitError
	if err := session.Run("ignored"); errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	return result{code, out.String(), errs.String()}
}

// dial waits for an sshd that was told to read its configuration again.
func (w *world) dial(t *testing.T, h *lab.Host) *ssh.Client {
	t.Helper()
	for deadline := time.Now().Add(commandLimit); ; {
		client, err := ssh.Dial("tcp", h.SSHAddr(), &ssh.ClientConfig{
			User: "kpssh", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.login.Signer)}, HostKeyCallback: ssh.FixedHostKey(h.HostKey),
			HostKeyAlgorithms: []string{h.HostKey.Type()}, Timeout: time.Minute,
		})
		if err == nil {
			return client
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(deadline) {
			t.Fatalf("logging in as kpssh: %v", err)
		}
	}
}
