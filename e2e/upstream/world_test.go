//go:build linux

package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// What a cluster says of itself, as hosts pin it.
const (
	clusterID = "prod-1"
	endpoint  = "https://10.0.0.5:6443"
	clusterCA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
)

// world is the keys of one fleet.
type world struct {
	signer, other, root, login testkit.Signer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	shared.Lab(t)
	key := func() testkit.Signer { return testkit.NewSigner(t, "ed25519") }
	return &world{signer: key(), other: key(), root: key(), login: key()}
}

// everything is a line of allowed_signers for a signer scoped to everything.
func everything(s testkit.Signer) string {
	return testkit.SignerLine(s, "kpssh") + "\n"
}

// conf is a shim.conf for hosts of the class bm.
func conf(warrant string, more ...string) string {
	return testkit.Settings(warrant, "bm", "120d", time.Now().Add(100*24*time.Hour), more...)
}

// trustFiles are those of a host that judges warrants.
func (w *world) trustFiles() map[string]string {
	return map[string]string{
		"revoked_keys": "# none\n",
		"root_signers": testkit.RootSigners(w.root),
		"cluster":      testkit.ClusterFile(clusterID, endpoint, []byte(clusterCA)),
		"floors":       "failing 1\ntls-* 1\n",
	}
}

// ours starts a host with our shim.
func (w *world) ours(t *testing.T, name, shimConf string) *lab.Host {
	t.Helper()
	return shared.Host(t, lab.HostOptions{
		Name: name, RelayKey: w.login.PublicKey(), AllowedSigners: everything(w.signer), ShimConf: shimConf, TrustFiles: w.trustFiles(),
	})
}

// standIn starts a host whose shim knows no warrant. It is pinned as ours are.
func (w *world) standIn(t *testing.T, name string) *lab.Host {
	t.Helper()
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "etc"), os.DirFS(filepath.Join(shared.Lab(t).Root(), "shim", "etc"))))
	script, err := os.ReadFile(filepath.Join("standin", "kpssh-shim"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "kpssh-shim"), script, 0o600))
	return shared.Host(t, lab.HostOptions{Name: name, RelayKey: w.login.PublicKey(), AllowedSigners: everything(w.signer), ShimDir: dir})
}

// theirs is how that project's controller sees a host.
func (w *world) theirs(t *testing.T, h *lab.Host) client.Host {
	t.Helper()
	return client.Host{
		Address: h.SSHAddr(), User: "kpssh", PrivateKey: w.login.PEM, Fingerprint: ssh.FingerprintSHA256(ecdsaKey(t, h)),
		ShimCommand: "/opt/kpssh/kpssh-shim", TrustedSigners: []string{w.signer.Line},
	}
}

// ecdsaKey is what a host shows that is asked for no type of key.
func ecdsaKey(t *testing.T, h *lab.Host) ssh.PublicKey {
	t.Helper()
	for _, key := range h.HostKeys {
		if key.Type() == ssh.KeyAlgoECDSA256 {
			return key
		}
	}
	t.Fatalf("%s has no ECDSA key", h.Name)
	return nil
}

// scripts are phases that write down what they were given, below a directory that
// that project's published scripts use too.
func scripts() map[string]string {
	const head = "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /var/lib/kpssh\n"
	text := map[string]string{}
	for _, phase := range []string{"install", "join", "leave", "uninstall"} {
		text[phase] = head + "env | grep ^KPSSH_ | sort >/var/lib/kpssh/" + phase + "\necho 'kpssh " + phase + ": OK'\n"
	}
	return text
}

// terms are what the warrants of the tests' profiles say.
const terms = `targets: [class bm, class small]
phases:
  install: {params: &vars ["KPSSH_VAR_k8sMinor required re [0-9]+[.][0-9]+", "KPSSH_VAR_clusterDNS optional type ip", "KPSSH_SECRET_ACTIVATION_ID optional secret type text"]}
  join: {params: *vars}
`

// sign has the command line sign scripts with a warrant, as an author would, and
// gives what a profile then holds.
func sign(t *testing.T, profile string, serial int, terms string, text map[string]string, keys ...testkit.Signer) client.Profile {
	t.Helper()
	dir := t.TempDir()
	args := []string{"sign", dir, "--profile", profile, "--serial", fmt.Sprint(serial)}
	for i, key := range keys {
		args = append(args, "--key", testkit.WriteFile(t, t.TempDir(), fmt.Sprintf("key-%d", i), key.PEM))
	}
	testkit.WriteFile(t, dir, "warrant.yaml", []byte(terms))
	for phase, script := range text {
		testkit.WriteFile(t, dir, phase+".sh", []byte(script))
	}
	hostwarrant(t, args...)
	p := client.Profile{Scripts: map[string]string{}, Signatures: map[string]string{}}
	for phase := range text {
		p.Scripts[phase], p.Signatures[phase] = read(t, filepath.Join(dir, phase+".sh")), read(t, filepath.Join(dir, phase+".sh.sig"))
		if !strings.Contains(p.Scripts[phase], "\n#warrant: serial "+fmt.Sprint(serial)+"\n") {
			t.Fatalf("%s has no warrant of serial %d", phase, serial)
		}
	}
	return p
}

// plain signs a script as it is, without a warrant.
func plain(t *testing.T, phase, script string, key testkit.Signer) client.Profile {
	t.Helper()
	return client.Profile{Scripts: map[string]string{phase: script}, Signatures: map[string]string{phase: testkit.Sign(t, key, "kpssh", []byte(script))}}
}

// hostwarrant runs the command line and gives its stdout.
func hostwarrant(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(testkit.Built(t, "hostwarrant"), args...).Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // as Output documents it
		t.Fatalf("hostwarrant %s: %v: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	must(t, err)
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}
