//go:build linux

package hosts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const (
	etcDir   = "/etc/kpssh"
	stateDir = "/var/lib/hostwarrant"
	workDir  = "/run/kpssh"
	// ranFile is where every script of these tests leaves its line.
	ranFile = "/root/ran"
	// sendLimit bounds one envelope, the shim's own wait for its end included.
	sendLimit = 2 * time.Minute
)

// world is one host, the login key that a relay has, and the keys that the host knows.
type world struct {
	host  *lab.Host
	login testkit.Signer
	conn  *ssh.Client
	// alice and bob may sign everything, rita is revoked, mallory is unknown.
	alice, bob, rita, mallory testkit.Signer
	// roots of which two must sign a statement.
	roots [3]testkit.Signer
	// began is what honest times are counted from.
	began time.Time
	// profiles is how many profiles there are by now.
	profiles int
}

// newWorld starts a host that lives as long as the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newSite(t, nil)
}

// newSite is newWorld with further files, by path, in which @LOGIN@, @ALICE@ and @MALLORY@ stand for public keys. Each test has
// its own host, so they run beside each other: one of them waits for a minute.
func newSite(t *testing.T, further map[string]string) *world {
	t.Helper()
	t.Parallel()
	w := &world{began: time.Now()}
	for _, key := range []*testkit.Signer{&w.login, &w.alice, &w.bob, &w.rita, &w.mallory, &w.roots[0], &w.roots[1], &w.roots[2]} {
		*key = testkit.NewSigner(t, "ed25519")
	}
	files := map[string]lab.File{}
	for path, content := range further {
		file := lab.File{Content: []byte(strings.NewReplacer("@LOGIN@", w.login.Line, "@ALICE@", w.alice.Line, "@MALLORY@", w.mallory.Line).Replace(content))}
		if strings.HasPrefix(path, "/etc/sudoers.d/") {
			file.Mode = 0o440
		}
		files[path] = file
	}
	w.host = shared.Host(t, lab.HostOptions{Name: "host-a", RelayKey: w.login.PublicKey(), Files: files})
	w.conn = w.dialAs(t, "kpssh")
	w.reset(t, nil)
	return w
}

func (w *world) tryDial(user string) (*ssh.Client, error) {
	return w.tryLogin(user, ssh.PublicKeys(w.login))
}

func (w *world) tryLogin(user string, method ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", w.host.SSHAddr(), &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{method}, HostKeyCallback: ssh.FixedHostKey(w.host.HostKey),
		HostKeyAlgorithms: []string{w.host.HostKey.Type()}, Timeout: time.Minute,
	})
}

// dialAs logs in for as long as the test lasts.
func (w *world) dialAs(t *testing.T, user string) *ssh.Client {
	t.Helper()
	conn, err := w.tryDial(user)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) //nolint:errcheck // the host may be gone by then
	return conn
}

const (
	clusterEndpoint = "https://10.0.0.5:6443"
	clusterCA       = "-----BEGIN CERTIFICATE-----\nlab\n-----END CERTIFICATE-----\n"
)

// trust is the honest content of /etc/kpssh, by name.
func (w *world) trust() map[string]string {
	return map[string]string{
		"allowed_signers": testkit.SignerLine(w.alice) + "\n" + testkit.SignerLine(w.bob) + "\n" + testkit.SignerLine(w.rita) + "\n",
		"revoked_keys":    w.rita.Line + "\n",
		"shim.conf":       w.conf(""),
		"cluster":         testkit.ClusterFile("lab", clusterEndpoint, []byte(clusterCA)),
		"floors":          "tls-* 1\n",
		"root_signers":    testkit.RootSigners(w.roots[:]...),
	}
}

// conf is shim.conf as hosts are set up, with further lines.
func (w *world) conf(more string) string {
	return testkit.Settings("required", "bm", "90d", w.began.Add(days(60)), "root-threshold=2") + more
}

// reset gives the host the honest trust files with some of them replaced (an empty one is missing), an empty state,
// and no trace of earlier runs.
func (w *world) reset(t *testing.T, changed map[string]string) {
	t.Helper()
	w.root(t, `umount `+workDir+` `+stateDir+` 2>/dev/null || :
rm -rf `+workDir+` `+ranFile+` /root/go /tmp/* `+stateDir+`/* `+stateDir+`/.[!.]*
find `+etcDir+` -mindepth 1 ! -name authorized_keys -delete
chown root:root `+etcDir+` `+stateDir+`; chmod 755 `+etcDir+`; chmod 700 `+stateDir)
	files := w.trust()
	maps.Copy(files, changed)
	for name, content := range files {
		if content != "" {
			w.write(t, etcDir+"/"+name, content)
		}
	}
}

func (w *world) write(t *testing.T, path, content string) {
	t.Helper()
	must(t, w.host.WriteFile(path, []byte(content), 0o644))
}

// read returns the content of a file of the host, and "" where there is none.
func (w *world) read(t *testing.T, path string) string {
	t.Helper()
	content, err := w.host.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	must(t, err)
	return string(content)
}

// root runs a shell command as the host's root, which must succeed.
func (w *world) root(t *testing.T, command string) string {
	t.Helper()
	return w.host.Must(t, command)
}

// user runs a shell command as kpssh: what somebody who has taken over the account could do.
func (w *world) user(t *testing.T, stdin, command string) answer {
	t.Helper()
	return w.exec(t, stdin, "setpriv", "--reuid=kpssh", "--regid=kpssh", "--clear-groups", "sh", "-c", command)
}

func (w *world) exec(t *testing.T, stdin string, command ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sendLimit)
	defer cancel()
	got, err := w.host.Exec(ctx, strings.NewReader(stdin), command...)
	if err != nil {
		return none(err)
	}
	return answer{got.Code, got.Stdout, got.Stderr}
}

// answer is what came back from the host. A code of -1 says that there was none, and stderr why. It is no failure by
// itself: tests send from several goroutines, and only their own may fail them.
type answer struct {
	code           int
	stdout, stderr string
}

func none(err error) answer { return answer{code: -1, stderr: err.Error()} }

// send takes an envelope to the shim through a session of its own.
func (w *world) send(t *testing.T, text string) answer {
	t.Helper()
	return w.session(t, strings.NewReader(text), "", nil)
}

// session runs command, whatever that is to sshd, with prepare called before it. An empty one asks for a shell.
func (w *world) session(t *testing.T, stdin io.Reader, command string, prepare func(*ssh.Session)) answer {
	t.Helper()
	s, err := w.conn.NewSession()
	if err != nil {
		return none(err)
	}
	limit := time.AfterFunc(sendLimit, func() { _ = s.Close() }) //nolint:errcheck // Wait says it
	defer limit.Stop()
	if prepare != nil {
		prepare(s)
	}
	var stdout, stderr bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = stdin, &stdout, &stderr
	if command == "" {
		err = s.Shell()
	} else {
		err = s.Start(command)
	}
	if err == nil {
		err = s.Wait()
	}
	if err == nil {
		return answer{0, stdout.String(), stderr.String()}
	}
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok && exit.Signal() == "" {
		return answer{exit.ExitStatus(), stdout.String(), stderr.String()}
	}
	return none(err)
}

// image is what must not change when the shim refuses: trust files, state, work files, and what scripts left.
func (w *world) image(t *testing.T) map[string]string {
	t.Helper()
	image := map[string]string{}
	root, err := os.OpenRoot(w.host.Path("/"))
	must(t, err)
	defer root.Close() //nolint:errcheck // it is only read
	for _, top := range []string{etcDir, stateDir, workDir, ranFile} {
		top = strings.TrimPrefix(top, "/")
		if info, err := root.Lstat(top); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			image[top], err = root.Readlink(top)
			must(t, err)
			continue // it may lead out of the host
		}
		err := fs.WalkDir(root.FS(), top, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			image[path] = info.Mode().String()
			if info.Mode().IsRegular() {
				content, err := root.ReadFile(path)
				image[path] += " " + string(content)
				return err
			}
			return nil
		})
		must(t, err)
	}
	// made when needed, and empty
	for _, path := range []string{workDir, workDir + "/.tmpfs", stateDir + "/running", stateDir + "/lock", stateDir + "/runs"} {
		delete(image, strings.TrimPrefix(path, "/"))
	}
	return image
}

// refuses sends an envelope that the host must refuse, and asserts that nothing ran or changed.
func (w *world) refuses(t *testing.T, text string, code envelope.ExitCode, says string) {
	t.Helper()
	before := w.image(t)
	got := w.send(t, text)
	if got.code != int(code) || !strings.Contains(got.stderr, says) {
		t.Errorf("answered %d (%s), want %d (%s)", got.code, got.stderr, code, says)
	}
	if got.stdout != "" {
		t.Errorf("a refusal printed %q", got.stdout)
	}
	w.unchanged(t, before)
}

func (w *world) unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, w.image(t)); diff != "" {
		t.Errorf("the host changed (-before +after):\n%s", diff)
	}
}

// runs sends an envelope that the host must run, once, to exit code 0.
func (w *world) runs(t *testing.T, o order) answer {
	t.Helper()
	before := w.read(t, ranFile)
	got := w.send(t, o.text())
	if got.code != 0 {
		t.Fatalf("answered %d (%s), want 0", got.code, got.stderr)
	}
	if ran := strings.TrimPrefix(w.read(t, ranFile), before); ran != o.mark+"\n" {
		t.Fatalf("what ran left %q, want %q", ran, o.mark)
	}
	return got
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
