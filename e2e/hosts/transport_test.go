//go:build linux

package hosts

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// laxSite is a host whose owner has opened everything that sshd can open, in a file that is read before ours, and
// lets root in with the same login key: what root gets there is the proof that it really is open.
func laxSite() map[string]string {
	return map[string]string{
		"/etc/ssh/sshd_config.d/00-site.conf": `AcceptEnv *
AllowAgentForwarding yes
AllowStreamLocalForwarding yes
AllowTcpForwarding yes
GatewayPorts yes
PermitTTY yes
PermitTunnel yes
PermitUserEnvironment yes
PermitUserRC yes
X11Forwarding yes
XAuthLocation /bin/true
PasswordAuthentication yes
PermitEmptyPasswords yes
KbdInteractiveAuthentication yes
TrustedUserCAKeys /etc/ssh/user_ca.pub
AuthorizedKeysCommand /bin/cat /etc/ssh/commanded
AuthorizedKeysCommandUser root
`,
		"/etc/ssh/user_ca.pub":       "@MALLORY@\n",
		"/etc/ssh/commanded":         "@ALICE@\n",
		"/root/.ssh/authorized_keys": "@LOGIN@\n",
		"/root/.ssh/environment":     "HW_EVIL=1\n",
		"/root/.ssh/rc":              "echo rc >/tmp/rc-root\n",
		// the account's home is root's; this is as if somebody had got there anyhow
		"/opt/kpssh/.ssh/environment":     "HW_EVIL=1\nBASH_ENV=/opt/kpssh/evil\nENV=/opt/kpssh/evil\nLD_PRELOAD=/opt/kpssh/evil.so\nPATH=/opt/kpssh\n",
		"/opt/kpssh/.ssh/rc":              "echo rc >/tmp/rc-kpssh\n",
		"/opt/kpssh/.ssh/authorized_keys": "@MALLORY@\n",
		"/opt/kpssh/evil":                 "touch /tmp/evil\n",
	}
}

// x11Request is the payload of x11-req (RFC 4254, 6.3.1).
type x11Request struct {
	Single        bool
	Proto, Cookie string
	Screen        uint32
}

// requests are what a client may ask sshd for beside a command.
func requests() map[string]func(*ssh.Client, *ssh.Session) error {
	asked := func(ok bool, err error) error {
		if err == nil && !ok {
			err = errors.New("refused")
		}
		return err
	}
	setenv := func(name string) func(*ssh.Client, *ssh.Session) error {
		return func(_ *ssh.Client, s *ssh.Session) error { return s.Setenv(name, "evil") }
	}
	return map[string]func(*ssh.Client, *ssh.Session) error{
		"a terminal (-tt)": func(_ *ssh.Client, s *ssh.Session) error {
			return s.RequestPty("xterm", 24, 80, ssh.TerminalModes{})
		},
		"the agent (-A)": func(_ *ssh.Client, s *ssh.Session) error {
			return asked(s.SendRequest("auth-agent-req@openssh.com", true, nil))
		},
		"X11 (-X)": func(_ *ssh.Client, s *ssh.Session) error {
			return asked(s.SendRequest("x11-req", true, ssh.Marshal(x11Request{false, "MIT-MAGIC-COOKIE-1", strings.Repeat("0a", 16), 0})))
		},
		"a port of the host's (-R)": func(c *ssh.Client, _ *ssh.Session) error {
			l, err := c.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"a socket of the host's (-R)": func(c *ssh.Client, _ *ssh.Session) error {
			l, err := c.ListenUnix("/tmp/socket")
			if err == nil {
				err = l.Close()
			}
			return err
		},
		"LC_ALL":                setenv("LC_ALL"),
		"BASH_ENV":              setenv("BASH_ENV"),
		"LD_PRELOAD":            setenv("LD_PRELOAD"),
		"a parameter's name":    setenv("KPSSH_NODE_NAME"),
		"the shim's own marker": setenv("KPSSH_SHIM_PID"),
	}
}

func TestSshdGivesTheLoginKeyNothingBesideTheShim(t *testing.T) {
	w := newSite(t, laxSite())
	root := w.dialAs(t, "root")
	for name, ask := range requests() {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				conn    *ssh.Client
				granted bool
			}{{w.conn, false}, {root, true}} {
				s, err := c.conn.NewSession()
				must(t, err)
				err = ask(c.conn, s)
				if (err == nil) != c.granted {
					t.Errorf("%s asked and got %v, want it granted: %v", c.conn.User(), err, c.granted)
				}
				must(t, ignoreEOF(s.Close()))
			}
		})
	}
	w.runs(t, w.join(t, ""))
}

// A channel to elsewhere is what -L, -D and -W come to.
func TestSshdOpensNoChannelToElsewhere(t *testing.T) {
	w := newSite(t, laxSite())
	root := w.dialAs(t, "root")
	listener, err := root.ListenUnix("/tmp/socket")
	must(t, err)
	defer listener.Close() //nolint:errcheck // the connection is closed anyway
	for name, to := range map[string][2]string{
		"the host's own sshd":    {"tcp", w.host.SSHAddr()},
		"a socket of the host's": {"unix", "/tmp/socket"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.conn.Dial(to[0], to[1])
			if _, refused := errors.AsType[*ssh.OpenChannelError](err); !refused {
				t.Errorf("kpssh: %v, want it refused", err)
			}
			conn, err := root.Dial(to[0], to[1])
			must(t, err)
			must(t, conn.Close())
		})
	}
	w.runs(t, w.join(t, ""))
}

// TestStockClientsReachTheShimAndNothingElse runs OpenSSH's own client with each option that asks for more. The
// envelope on its stdin is honest: the shim runs it, and the option changes nothing.
func TestStockClientsReachTheShimAndNothingElse(t *testing.T) {
	w := newSite(t, laxSite())
	o := w.join(t, "test ! -t 0\nenv\n")
	for name, options := range map[string][]string{
		"none": nil, "-t": {"-t"}, "-tt": {"-tt"}, "-A": {"-A"}, "-X": {"-X"}, "-Y": {"-Y"}, "-L": {"-L", freeSocket(t) + ":/run/x"},
		"-R": {"-R", "0:127.0.0.1:22"}, "-D": {"-D", "127.0.0.1:" + freePort(t)}, "SendEnv": {"-o", "SendEnv=*"}, "SetEnv": {"-o", "SetEnv=BASH_ENV=/opt/kpssh/evil"},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			got := w.client(t, "kpssh", o.text(), options)
			if name == "-tt" { // this client does not go on without the terminal
				if got.code != 255 || w.read(t, ranFile) != "" {
					t.Errorf("ssh -tt answered %+v", got)
				}
				return
			}
			if got.code != 0 {
				t.Errorf("ssh answered %d: %s", got.code, got.stderr)
			}
			for _, word := range []string{"DISPLAY=", "SSH_", "EVIL", "BASH_ENV", "LD_PRELOAD"} {
				if strings.Contains(got.stdout, word) {
					t.Errorf("the script's environment holds %s: %s", word, got.stdout)
				}
			}
			if ran := w.read(t, ranFile); ran != o.mark+"\n" {
				t.Errorf("what ran left %q", ran)
			}
			w.nothingFrom(t)
		})
	}
}

// nothingFrom asserts that none of the files that would execute on a lax host did.
func (w *world) nothingFrom(t *testing.T) {
	t.Helper()
	if left := w.root(t, "ls -A /tmp"); left != "" {
		t.Errorf("in /tmp is %q", left)
	}
}

// TestForwardedPortsLeadNowhere connects through -L and -D of OpenSSH's client to the host's sshd, whose first bytes
// would come back.
func TestForwardedPortsLeadNowhere(t *testing.T) {
	w := newSite(t, laxSite())
	addr := w.host.Addr.As4()
	for name, c := range map[string]struct {
		option string
		hello  []byte
	}{
		"-L": {"-L127.0.0.1:%s:" + w.host.SSHAddr(), nil},
		"-D": {"-D127.0.0.1:%s", append([]byte{4, 1, 0, 22}, append(addr[:], 0)...)}, // SOCKS4 CONNECT
	} {
		t.Run(name, func(t *testing.T) {
			for user, want := range map[string]bool{"kpssh": false, "root": true} {
				port := freePort(t)
				stop := w.background(t, user, fmt.Sprintf(c.option, port), "-N")
				if got := strings.Contains(throughPort(t, port, c.hello), "SSH-2.0"); got != want {
					t.Errorf("%s reaches the host's sshd through its port: %v, want %v", user, got, want)
				}
				stop()
			}
		})
	}
}

func throughPort(t *testing.T, port string, hello []byte) string {
	t.Helper()
	var conn net.Conn
	testkit.Eventually(t, time.Minute, "port of the client's", func() bool {
		var err error
		conn, err = net.Dial("tcp", "127.0.0.1:"+port)
		return err == nil
	})
	defer conn.Close() //nolint:errcheck // it was read to its end
	must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	if _, err := conn.Write(hello); err != nil {
		return ""
	}
	got := make([]byte, 64)
	for at := 0; at < len(got); {
		n, err := conn.Read(got[at:])
		at += n
		if err != nil || bytes.Contains(got, []byte("SSH-2.0")) {
			return string(got[:at])
		}
	}
	return string(got)
}

// TestFileTransferIsAnEnvelopeToTheShim: sftp asks for a subsystem, scp runs a command. Both are the shim.
func TestFileTransferIsAnEnvelopeToTheShim(t *testing.T) {
	w := newSite(t, laxSite())
	before := w.image(t)
	t.Run("sftp", func(t *testing.T) {
		got := w.subsystem(t, "sftp", "\x00\x00\x00\x05\x01\x00\x00\x00\x03") // SSH_FXP_INIT, version 3
		if got != (answer{code: 4}) {                                         // sshd sends no stderr of a subsystem
			t.Errorf("answered %+v, want 4 and nothing", got)
		}
	})
	for name, command := range map[string]string{
		"scp up":   "scp -t /root",
		"scp down": "scp -f /etc/shadow",
		"rsync":    "rsync --server -logDtpre.iLsfxC . /root",
	} {
		t.Run(name, func(t *testing.T) {
			got := w.session(t, strings.NewReader("C0644 5 ran\nevil\n\x00"), command, nil)
			if got.code != 4 || got.stdout != "" || !strings.Contains(got.stderr, "envelope: ") {
				t.Errorf("answered %+v, want 4 and nothing", got)
			}
		})
	}
	w.unchanged(t, before)
	o := w.join(t, "")
	for name, got := range map[string]answer{
		"scp":  w.session(t, strings.NewReader(o.text()), "scp -t /root", nil),
		"sftp": w.subsystem(t, "sftp", o.text()),
	} {
		if got.code != 0 {
			t.Errorf("the honest envelope as %s: answered %+v", name, got)
		}
	}
	if ran := w.read(t, ranFile); ran != o.mark+"\n"+o.mark+"\n" {
		t.Errorf("what ran left %q", ran)
	}
}

// TestTheClientsCommandIsNeverLookedAt: SSH_ORIGINAL_COMMAND holds shell syntax, and the honest envelope runs as if it
// did not.
func TestTheClientsCommandIsNeverLookedAt(t *testing.T) {
	w := newSite(t, laxSite())
	o := w.join(t, "echo \"${SSH_ORIGINAL_COMMAND-none}\"\n")
	for name, command := range map[string]string{
		"none":                 "",
		"a second command":     "; touch /tmp/evil",
		"a substitution":       "$(touch /tmp/evil)",
		"backquotes":           "`touch /tmp/evil`",
		"a line of its own":    "\ntouch /tmp/evil\n",
		"a pipe":               "| touch /tmp/evil",
		"a shell":              "/bin/sh -c 'touch /tmp/evil'",
		"a function":           "() { :; }; touch /tmp/evil",
		"quotes":               `'"; touch /tmp/evil; "'`,
		"the shim, with words": "/opt/kpssh/kpssh-shim --help",
		"an option":            "--rcfile=/opt/kpssh/evil",
		"a redirection":        ">/tmp/evil",
		"much":                 strings.Repeat("x", 100000),
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			got := w.session(t, strings.NewReader(o.text()), command, nil)
			if got.code != 0 || got.stdout != "none\n" || w.read(t, ranFile) != o.mark+"\n" {
				t.Errorf("answered %+v", got)
			}
			w.nothingFrom(t)
		})
	}
}

// TestFilesInTheHomeOfTheAccountAreNotRead: ~/.ssh/environment, ~/.ssh/rc and ~/.ssh/authorized_keys. Root's own are
// read, so the site is as lax as it looks.
func TestFilesInTheHomeOfTheAccountAreNotRead(t *testing.T) {
	w := newSite(t, laxSite())
	got := w.runs(t, w.join(t, "env\n"))
	if strings.Contains(got.stdout, "EVIL") || strings.Contains(got.stdout, "evil") || strings.Contains(got.stdout, "/opt/kpssh") {
		t.Errorf("the script's environment is not clean: %s", got.stdout)
	}
	w.nothingFrom(t)
	other := *w
	other.login = w.mallory
	if _, err := other.tryDial("kpssh"); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		t.Errorf("a key in ~/.ssh/authorized_keys logs in: %v", err)
	}
	root := *w
	root.conn = w.dialAs(t, "root")
	if got := root.session(t, nil, "env; cat /tmp/rc-root", nil); !strings.Contains(got.stdout, "HW_EVIL=1\n") || !strings.HasSuffix(got.stdout, "rc\n") {
		t.Errorf("root's files are not read either, so this shows nothing: %+v", got)
	}
}

// TestNothingButTheLoginKeyLogsIn, on a site that takes certificates of a user CA, keys that a command prints, and
// passwords, the empty one too. Root shows that the first two really log in.
func TestNothingButTheLoginKeyLogsIn(t *testing.T) {
	w := newSite(t, laxSite())
	w.root(t, "usermod -p '' kpssh")
	carol := testkit.NewSigner(t, "ed25519")
	certificate := func(user string) ssh.AuthMethod {
		signer, err := ssh.NewCertSigner(testkit.Certify(t, w.mallory, carol.PublicKey(), []string{user}, func(c *ssh.Certificate) {
			c.ValidBefore = ssh.CertTimeInfinity
		}), carol)
		must(t, err)
		return ssh.PublicKeys(signer)
	}
	for name, c := range map[string]struct {
		method func(user string) ssh.AuthMethod
		root   bool
	}{
		"a certificate of the site's CA": {certificate, true},
		"a key that a command prints":    {func(string) ssh.AuthMethod { return ssh.PublicKeys(w.alice) }, true},
		"an unknown key":                 {func(string) ssh.AuthMethod { return ssh.PublicKeys(w.bob) }, false},
		"no password":                    {func(string) ssh.AuthMethod { return ssh.Password("") }, false},
		"a password":                     {func(string) ssh.AuthMethod { return ssh.Password("kpssh") }, false},
		"a dialogue": {func(string) ssh.AuthMethod {
			return ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
				return make([]string, len(questions)), nil
			})
		}, false},
		"nothing": {func(string) ssh.AuthMethod { return ssh.PublicKeys() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.tryLogin("kpssh", c.method("kpssh")); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
				t.Errorf("kpssh: %v", err)
			}
			if !c.root {
				return
			}
			conn, err := w.tryLogin("root", c.method("root"))
			must(t, err)
			must(t, conn.Close())
		})
	}
	w.runs(t, w.join(t, ""))
}

// TestTheLoginKeyLogsInFromTheRelayOnly: the same key, from the next host of the pool.
func TestTheLoginKeyLogsInFromTheRelayOnly(t *testing.T) {
	w := newWorld(t)
	neighbour := &world{host: shared.Host(t, lab.HostOptions{Name: "host-b"})}
	must(t, neighbour.host.WriteFile("/root/key", w.login.PEM, 0o600))
	neighbour.write(t, "/root/known_hosts", w.host.KnownHostLine()+"\n")
	o := w.join(t, "")
	got := neighbour.exec(t, o.text(), "ssh", "-F", "/dev/null", "-i", "/root/key", "-o", "UserKnownHostsFile=/root/known_hosts", "-o", "BatchMode=yes", "kpssh@"+w.host.Addr.String())
	if got.code != 255 || !strings.Contains(got.stderr, "Permission denied") || w.read(t, ranFile) != "" {
		t.Errorf("from the neighbour: answered %+v", got)
	}
	w.runs(t, o)
}

// TestAConnectionThatIsCutRunsNothing: what came before the cut is no envelope, wherever that is.
func TestAConnectionThatIsCutRunsNothing(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	text := o.text()
	for name, at := range map[string]int{
		"in the phase": strings.Index(text, "oin\n"), "behind the parameters": strings.Index(text, "sig-b64"),
		"in the signature": strings.Index(text, "sig-b64") + 9 + 400, "in the script": len(text) - 41, "before the last of it": len(text) - 5,
	} {
		t.Run(name, func(t *testing.T) {
			before := w.image(t)
			conn, err := w.tryDial("kpssh")
			must(t, err)
			s, err := conn.NewSession()
			must(t, err)
			stdin, err := s.StdinPipe()
			must(t, err)
			must(t, s.Shell())
			_, err = io.WriteString(stdin, text[:at])
			must(t, err)
			testkit.Eventually(t, time.Minute, "shim that reads", func() bool { return w.root(t, "pgrep -xc head || :") != "0\n" })
			must(t, conn.Close())
			testkit.Eventually(t, time.Minute, "end of the shim", func() bool { return w.root(t, "pgrep -fc /opt/kpssh/kpssh-shi[m] || :") == "0\n" })
			w.unchanged(t, before)
		})
	}
	w.runs(t, o)
}

// TestTheDummyOfAcceptEnvReachesNothing: the one name that sshd takes from the account's clients.
func TestTheDummyOfAcceptEnvReachesNothing(t *testing.T) {
	w := newSite(t, laxSite())
	o := w.join(t, "env\n")
	got := w.session(t, strings.NewReader(o.text()), "", func(s *ssh.Session) {
		must(t, s.Setenv("KPSSH_NOTHING", "evil"))
	})
	if got.code != 0 || strings.Contains(got.stdout, "KPSSH_NOTHING") {
		t.Errorf("answered %+v", got)
	}
}

// subsystem asks for one and sends it input.
func (w *world) subsystem(t *testing.T, name, input string) answer {
	t.Helper()
	channel, requests, err := w.conn.OpenChannel("session", nil)
	must(t, err)
	limit := time.AfterFunc(sendLimit, func() { _ = channel.Close() }) //nolint:errcheck // reading says it
	defer limit.Stop()
	ok, err := channel.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{name}))
	if err != nil || !ok {
		t.Fatalf("subsystem %s: %v, %v", name, ok, err)
	}
	_, err = io.WriteString(channel, input)
	must(t, errors.Join(err, channel.CloseWrite()))
	stdout, err := io.ReadAll(channel)
	must(t, err)
	got := answer{code: -1, stdout: string(stdout)}
	for r := range requests {
		if r.Type == "exit-status" {
			got.code = int(binary.BigEndian.Uint32(r.Payload))
		}
	}
	return got
}

// client runs OpenSSH's ssh.
func (w *world) client(t *testing.T, user, stdin string, options []string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sendLimit)
	defer cancel()
	cmd := w.clientCommand(ctx, t, user, options...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return answer{exit.ExitCode(), stdout.String(), stderr.String()}
	}
	must(t, err)
	return answer{0, stdout.String(), stderr.String()}
}

func (w *world) clientCommand(ctx context.Context, t *testing.T, user string, options ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	key := testkit.WriteFile(t, dir, "key", w.login.PEM)
	known := testkit.WriteFile(t, dir, "known_hosts", []byte(w.host.KnownHostLine()+"\n"))
	args := append([]string{"-F", "/dev/null", "-i", key, "-o", "UserKnownHostsFile=" + known, "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"}, options...)
	cmd := exec.CommandContext(ctx, testkit.Tool(t, "ssh"), append(args, user+"@"+w.host.Addr.String())...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "DISPLAY=:0", "BASH_ENV=/opt/kpssh/evil", "LC_ALL=evil", "SSH_AUTH_SOCK=" + testkit.Agent(t)}
	return cmd
}

// background starts OpenSSH's ssh and returns how to end it.
func (w *world) background(t *testing.T, user string, options ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := w.clientCommand(ctx, t, user, options...)
	must(t, cmd.Start())
	return func() {
		cancel()
		if err := cmd.Wait(); err == nil {
			t.Error("the client ended by itself")
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer must(t, l.Close())
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func freeSocket(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "s")
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
