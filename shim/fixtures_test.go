package shim

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// fixedScript is what the crafted signatures are over.
const fixedScript = "echo fixed\n"

// makeFixtures fills a directory with keys, certificates and crafted signatures
// for one run of the tests. Nothing of it is ever committed.
func makeFixtures(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f := fixtures{t, dir}
	f.write("fixed", []byte(fixedScript))
	for _, name := range []string{"alice", "bob", "rita", "mallory", "carol", "ca", "root1", "root2", "root3"} {
		f.keygen(name, "-t", "ed25519")
	}
	f.keygen("ecdsa", "-t", "ecdsa", "-b", "256")
	f.keygen("rsa3072", "-t", "rsa", "-b", "3072")
	f.keygen("rsa2048", "-t", "rsa", "-b", "2048")
	f.certificates()
	f.crafted()
	return dir
}

type fixtures struct {
	t   *testing.T
	dir string
}

func (f fixtures) write(name string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f fixtures) run(args ...string) {
	f.t.Helper()
	cmd := exec.CommandContext(deadline(f.t), "ssh-keygen", args...)
	cmd.Dir = f.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
}

func (f fixtures) keygen(name string, kind ...string) {
	f.t.Helper()
	f.run(append([]string{"-q", "-N", "", "-C", name, "-f", name}, kind...)...)
}

// certificates makes copies of carol's key, each with another certificate.
func (f fixtures) certificates() {
	f.t.Helper()
	f.run("-k", "-f", "revoked.krl", "rita.pub")
	for name, args := range map[string][]string{
		"cert":         {"-s", "ca", "-I", "carol", "-n", "kpssh", "-V", "-1h:+1h"},
		"cert_rsaca":   {"-s", "rsa3072", "-t", "rsa-sha2-512", "-I", "carol", "-n", "kpssh", "-V", "-1h:+1h"},
		"cert_sha1":    {"-s", "rsa3072", "-t", "ssh-rsa", "-I", "carol", "-n", "kpssh", "-V", "-1h:+1h"},
		"cert_option":  {"-s", "ca", "-I", "carol", "-n", "kpssh", "-V", "-1h:+1h", "-O", "force-command=/bin/true"},
		"cert_forever": {"-s", "ca", "-I", "carol", "-n", "kpssh"},
		"cert_other":   {"-s", "ca", "-I", "carol", "-n", "other", "-V", "-1h:+1h"},
		"cert_old":     {"-s", "ca", "-I", "carol", "-n", "kpssh", "-V", "20200101:20200102"},
		"cert_twice":   {"-s", "ca", "-I", "x\nCritical Options: (none)", "-n", "kpssh", "-V", "-1h:+1h"},
	} {
		for _, end := range []string{"", ".pub"} {
			content, err := os.ReadFile(filepath.Join(f.dir, "carol"+end))
			if err != nil {
				f.t.Fatal(err)
			}
			f.write(name+end, content)
		}
		f.run(append(append([]string{"-q"}, args...), name+".pub")...)
	}
	f.run("-q", "-s", "ca", "-I", "rsa", "-n", "kpssh", "-V", "-1h:+1h", "rsa2048.pub")
}

// sshString is RFC 4251's string.
func sshString(b ...byte) []byte {
	return ssh.Marshal(struct{ S []byte }{b})
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// sshsig lays out PROTOCOL.sshsig as a forger may.
type sshsig struct {
	version   byte
	key       []byte
	namespace string
	reserved  string
	hash      string
	signature []byte
	rest      []byte
}

func (s sshsig) blob() []byte {
	return join([]byte("SSHSIG\x00\x00\x00"), []byte{s.version}, sshString(s.key...), sshString([]byte(s.namespace)...),
		sshString([]byte(s.reserved)...), sshString([]byte(s.hash)...), sshString(s.signature...), s.rest)
}

// toSign is what a signature in namespace is made over.
func toSign(namespace string) []byte {
	sum := sha512.Sum512([]byte(fixedScript))
	return join([]byte("SSHSIG"), sshString([]byte(namespace)...), sshString(), sshString([]byte("sha512")...), sshString(sum[:]...))
}

func armor(blob []byte, width int) []byte {
	text := base64.StdEncoding.EncodeToString(blob)
	var out strings.Builder
	out.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for text != "" {
		n := min(width, len(text))
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	out.WriteString("-----END SSH SIGNATURE-----\n")
	return []byte(out.String())
}

func (f fixtures) publicKey(name, kind string, blob []byte) {
	f.t.Helper()
	f.write(name+".pub", fmt.Appendf(nil, "%s %s %s\n", kind, base64.StdEncoding.EncodeToString(blob), name))
}

// crafted writes signatures over fixedScript that no signing tool makes, each as
// NAME.sig. The keys are gail (Ed25519), skye (sk-ssh-ed25519), webb (sk-ecdsa).
func (f fixtures) crafted() {
	f.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	key := join(sshString([]byte("ssh-ed25519")...), sshString(public...))
	f.publicKey("gail", "ssh-ed25519", key)
	raw := ed25519.Sign(private, toSign("kpssh"))
	algorithm := sshString([]byte("ssh-ed25519")...)
	good := sshsig{version: 1, key: key, namespace: "kpssh", hash: "sha512", signature: join(algorithm, sshString(raw...))}
	with := func(change func(*sshsig)) []byte {
		s := good
		change(&s)
		return s.blob()
	}
	blob := good.blob()
	for name, b := range map[string][]byte{
		"good":      blob,
		"version0":  with(func(s *sshsig) { s.version = 0 }),
		"reserved":  with(func(s *sshsig) { s.reserved = "x" }),
		"sha1hash":  with(func(s *sshsig) { s.hash = "sha1" }),
		"after":     with(func(s *sshsig) { s.rest = []byte("x") }),
		"within":    with(func(s *sshsig) { s.signature = join(s.signature, []byte("x")) }),
		"plus_l":    with(func(s *sshsig) { s.signature = join(algorithm, sshString(plusOrder(raw)...)) }),
		"cutlength": blob[:len(blob)-len(good.signature)-2],
		"cutstring": blob[:len(blob)-3],
		"namespace": with(func(s *sshsig) {
			s.namespace = "file"
			s.signature = join(algorithm, sshString(ed25519.Sign(private, toSign("file"))...))
		}),
		"empty": nil,
	} {
		f.write(name+".sig", armor(b, 70))
	}
	f.write("narrow.sig", armor(blob, 64))
	f.securityKeys()
	f.webauthn()
}

// plusOrder adds the group order to S: a second spelling of one signature.
func plusOrder(raw []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := new(big.Int)
	for i := len(raw) - 1; i >= 32; i-- {
		s.Lsh(s, 8).Or(s, big.NewInt(int64(raw[i])))
	}
	s.Add(s, order)
	out := append([]byte(nil), raw[:32]...)
	for range 32 {
		out = append(out, byte(new(big.Int).And(s, big.NewInt(255)).Int64()))
		s.Rsh(s, 8)
	}
	return out
}

// securityKeys plays an Ed25519 security key in software, touched and not
// (PROTOCOL.u2f).
func (f fixtures) securityKeys() {
	f.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	const kind, application = "sk-ssh-ed25519@openssh.com", "ssh:"
	key := join(sshString([]byte(kind)...), sshString(public...), sshString([]byte(application)...))
	f.publicKey("skye", kind, key)
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(toSign("kpssh"))
	for name, flags := range map[string]byte{"touched": 1, "untouched": 0, "verified_untouched": 4} {
		tail := []byte{flags, 0, 0, 0, 9}
		raw := ed25519.Sign(private, join(app[:], tail, message[:]))
		s := sshsig{version: 1, key: key, namespace: "kpssh", hash: "sha512", signature: join(sshString([]byte(kind)...), sshString(raw...), tail)}
		f.write(name+".sig", armor(s.blob(), 70))
		if flags == 1 {
			s.signature = s.signature[:len(s.signature)-1]
			f.write("shortcounter.sig", armor(s.blob(), 70))
		}
	}
}

// webauthn makes a signature as a browser does, which ssh-keygen accepts.
func (f fixtures) webauthn() {
	f.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	point, err := private.PublicKey.Bytes()
	if err != nil {
		f.t.Fatal(err)
	}
	const kind, application, origin = "sk-ecdsa-sha2-nistp256@openssh.com", "example.org", "https://example.org"
	key := join(sshString([]byte(kind)...), sshString([]byte("nistp256")...), sshString(point...), sshString([]byte(application)...))
	f.publicKey("webb", kind, key)
	client := fmt.Appendf(nil, `{"type":"webauthn.get","challenge":"%s","origin":"%s","crossOrigin":false}`,
		base64.RawURLEncoding.EncodeToString(toSign("kpssh")), origin)
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(client)
	tail := []byte{1, 0, 0, 0, 9}
	digest := sha256.Sum256(join(app[:], tail, message[:]))
	r, s, err := ecdsa.Sign(rand.Reader, private, digest[:])
	if err != nil {
		f.t.Fatal(err)
	}
	raw := ssh.Marshal(struct{ R, S *big.Int }{r, s})
	signature := join(sshString([]byte("webauthn-"+kind)...), sshString(raw...), tail,
		sshString([]byte(origin)...), sshString(client...), sshString())
	f.write("webauthn.sig", armor(sshsig{version: 1, key: key, namespace: "kpssh", hash: "sha512", signature: signature}.blob(), 70))
}
