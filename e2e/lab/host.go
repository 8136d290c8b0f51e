//go:build linux

package lab

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostPrefix begins the journal name of a host's first process.
const hostPrefix = "sshd@"

// sshPort is where a host's sshd listens, on the host's own address.
const sshPort = 22

// File is one file of a host.
type File struct {
	Content []byte
	Mode    os.FileMode // 0 is 0644
}

// HostOptions of StartHost.
type HostOptions struct {
	Name           string            // host name; required, a DNS label
	RelayKey       ssh.PublicKey     // may log in as kpssh, from the lab's bridge address only; nil: nobody may
	AllowedSigners string            // /etc/kpssh/allowed_signers; empty: there is none
	ShimConf       string            // /etc/kpssh/shim.conf; empty: the shipped one
	TrustFiles     map[string]string // further files of /etc/kpssh by name
	Files          map[string]File   // further files by absolute path, written last
	ShimDir        string            // laid out as shim/ of the checkout; empty: shim/ of the checkout
	Bare           bool              // a host that nobody set up: sshd and sudo of Debian, Files, nothing of ours, no account
	Node           bool              // can become a node: cgroups of its own, kubelet, and room for containerd
}

// Host is a running host.
type Host struct {
	Name    string
	Addr    netip.Addr
	HostKey ssh.PublicKey // Ed25519; HostKeys has all

	HostKeys []ssh.PublicKey

	lab     *Lab
	program *Program
	link    string
	cgroups []cgroup // of one with Node
}

// StartHost makes a host and returns when its sshd answers.
func (l *Lab) StartHost(ctx context.Context, o HostOptions) (*Host, error) {
	h, config, err := l.prepareHost(o)
	if err == nil && o.Node {
		config.Node, err = h.prepareNode(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("starting host %q: %w", o.Name, err)
	}
	if err := h.start(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("starting host %q: %w", o.Name, err), h.Stop())
	}
	return h, nil
}

// prepareHost decides everything about the host; nothing is made yet but its directory and log.
func (l *Lab) prepareHost(o HostOptions) (*Host, *hostConfig, error) {
	if !isDNSLabel(o.Name) {
		return nil, nil, errors.New("the name is no DNS label")
	}
	if err := l.errClosed(); err != nil {
		return nil, nil, err
	}
	number, err := l.nextHostNumber()
	if err != nil {
		return nil, nil, err
	}
	a := l.net.prefix.Addr().As4()
	a[3] = byte(number)
	h := &Host{Name: o.Name, Addr: netip.AddrFrom4(a), lab: l, link: linkStem(l.id) + "v" + strconv.Itoa(number)}
	dir := l.state.path("hosts", strconv.Itoa(number))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	keys, err := h.makeKeys()
	if err != nil {
		return nil, nil, err
	}
	files, err := hostFiles(l, h, o, keys)
	if err != nil {
		return nil, nil, err
	}
	return h, &hostConfig{Name: h.Name, Addr: h.Addr, Dir: dir, Files: files, Bare: o.Bare}, nil
}

// nextHostNumber is the last byte of the address: .10 to .253, never used twice in a lab, so that no test meets the
// host key of an earlier one under the same address.
func (l *Lab) nextHostNumber() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nextHost
	if n > 253 {
		return 0, errors.New("the lab's /24 is used up")
	}
	l.nextHost++
	return n, nil
}

// makeKeys returns the host's private keys by file name.
func (h *Host) makeKeys() (map[string][]byte, error) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, key := range map[string]crypto.Signer{"ssh_host_ed25519_key": ed, "ssh_host_ecdsa_key": ec} {
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			return nil, err
		}
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			return nil, err
		}
		files[name] = pem.EncodeToMemory(block)
		files[name+".pub"] = ssh.MarshalAuthorizedKey(public)
		h.HostKeys = append(h.HostKeys, public)
		if public.Type() == ssh.KeyAlgoED25519 {
			h.HostKey = public
		}
	}
	return files, nil
}

// start launches the host's first process in namespaces of its own, gives it its end of a cable to the bridge, then
// its configuration, and waits for its word that sshd answers.
func (h *Host) start(ctx context.Context, config *hostConfig) error {
	configR, configW, err := os.Pipe()
	if err != nil {
		return err
	}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, configR.Close(), configW.Close())
	}
	cmd := exec.Command(h.lab.helper.exe, helperWord, helperHost, h.Name)
	for _, c := range h.cgroups {
		cmd.Args = append(cmd.Args, c.Dir)
	}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + hostPath, "LC_ALL=C", "GOMAXPROCS=1"}
	cmd.ExtraFiles = []*os.File{configR, readyW} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
		syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET | syscall.CLONE_NEWCGROUP}
	h.program, err = h.lab.StartProgram(hostPrefix+h.Name, cmd)
	err = errors.Join(err, configR.Close(), readyW.Close())
	if err == nil {
		err = h.connect(ctx)
	}
	if err == nil {
		err = json.NewEncoder(configW).Encode(config)
	}
	err = errors.Join(err, configW.Close())
	if err != nil {
		return errors.Join(err, readyR.Close())
	}
	return h.awaitReady(ctx, readyR)
}

// connect makes the cable. The other end is in the host's network namespace from its first moment.
func (h *Host) connect(ctx context.Context) error {
	if err := h.lab.state.record(entry{Kind: kindLink, Name: h.link}); err != nil {
		return err
	}
	return ip(ctx,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", h.link, h.program.PID()),
		fmt.Sprintf("link set %s master %s up", h.link, h.lab.net.bridge))
}

func (h *Host) awaitReady(ctx context.Context, ready *os.File) error {
	said := make(chan string, 1)
	go func() {
		b, err := io.ReadAll(ready)
		if err != nil {
			b = []byte(err.Error())
		}
		said <- string(b)
	}()
	var word string
	select {
	case word = <-said:
	case <-ctx.Done():
		err := h.program.Kill() // closes the pipe, which ends the reader
		<-said
		return errors.Join(ctx.Err(), err, ready.Close())
	}
	if err := ready.Close(); err != nil {
		return err
	}
	if word == hostReady {
		return nil
	}
	if word == "" {
		<-h.program.done
		word = "its first process has ended"
	}
	return fmt.Errorf("%s; the end of its log:\n%s", strings.TrimSpace(word), h.program.Tail(10))
}

// Stop is the host's power switch: every process in it ends, and all it wrote is gone.
func (h *Host) Stop() error {
	var errs []error
	if h.program != nil {
		errs = append(errs, h.program.Kill(), deleteLink(context.Background(), h.link))
	}
	for _, c := range h.cgroups {
		errs = append(errs, removeCgroup(context.Background(), c.Dir))
	}
	return errors.Join(errs...)
}

// Unplug pulls the cable: what is sent in either direction is lost, and nobody is told.
func (h *Host) Unplug(ctx context.Context) error { return ip(ctx, "link set "+h.link+" down") }

// Plug puts the cable back.
func (h *Host) Plug(ctx context.Context) error { return ip(ctx, "link set "+h.link+" up") }

// PID is the host's first process, in this program's namespace.
func (h *Host) PID() int { return h.program.PID() }

// SSHAddr is address:port of its sshd.
func (h *Host) SSHAddr() string { return netip.AddrPortFrom(h.Addr, sshPort).String() }

// Port is its sshd's.
func (h *Host) Port() int { return sshPort }

// KnownHostLine is the known_hosts line of the Ed25519 host key.
func (h *Host) KnownHostLine() string { return h.KnownHostLineOf(h.HostKey) }

// KnownHostLineOf is that of another of its keys.
func (h *Host) KnownHostLineOf(key ssh.PublicKey) string {
	return knownhosts.Line([]string{h.Addr.String()}, key)
}

// OtherHostKey is its ECDSA host key, by which it never signs proofs.
func (h *Host) OtherHostKey() ssh.PublicKey {
	for _, key := range h.HostKeys {
		if key.Type() == ssh.KeyAlgoECDSA256 {
			return key
		}
	}
	return nil
}

// Log returns the last lines of the host's log: sshd's, with -e.
func (h *Host) Log(lines int) string { return h.program.Tail(lines) }

// Path is where this machine sees a file of the host. Do not open a path through it whose directories the host may
// have made absolute symbolic links: they would lead into this machine. ReadFile and WriteFile refuse those.
func (h *Host) Path(p string) string {
	return filepath.Join("/proc", strconv.Itoa(h.PID()), "root", p)
}

// ReadFile reads a file of the host.
func (h *Host) ReadFile(p string) ([]byte, error) {
	root, err := os.OpenRoot(h.Path("/"))
	if err != nil {
		return nil, err
	}
	b, err := root.ReadFile(relative(p))
	return b, errors.Join(err, root.Close())
}

// WriteFile writes a file of the host, with its directories.
func (h *Host) WriteFile(p string, content []byte, mode os.FileMode) error {
	root, err := os.OpenRoot(h.Path("/"))
	if err != nil {
		return err
	}
	p = relative(p)
	err = root.MkdirAll(filepath.Dir(p), 0o755)
	if err == nil {
		err = root.WriteFile(p, content, mode)
	}
	if err == nil {
		err = root.Chmod(p, mode) // whatever the umask
	}
	return errors.Join(err, root.Close())
}

func relative(p string) string { return strings.TrimPrefix(filepath.Clean("/"+p), "/") }

// Exec runs a command as root inside the host, with a clean environment. A non-zero exit is no error: it is in the
// result. When ctx ends, the command's process group is killed.
func (h *Host) Exec(ctx context.Context, stdin io.Reader, command ...string) (Result, error) {
	args := []string{
		"--target", strconv.Itoa(h.PID()), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
		"--root", "--wd", "--",
	}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, command...)...)
	cmd.Env = []string{"PATH=" + hostPath, "HOME=/root", "LC_ALL=C"}
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return run(cmd)
}

func isDNSLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
