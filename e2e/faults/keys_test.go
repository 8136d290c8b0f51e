//go:build linux

package faults

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/transport"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// keyFiles are where sshd looks for its keys, by NewSigner's kinds.
func keyFiles() map[string]string {
	return map[string]string{
		"ed25519": "/etc/ssh/ssh_host_ed25519_key", "ecdsa256": "/etc/ssh/ssh_host_ecdsa_key", "rsa3072": "/etc/ssh/ssh_host_rsa_key",
	}
}

// newHostWithKeys starts one with a key of each kind that Debian makes.
func newHostWithKeys(t *testing.T) (target, map[string]testkit.Signer) {
	t.Helper()
	keys := map[string]testkit.Signer{}
	files := map[string]lab.File{"/etc/ssh/sshd_config.d/keys.conf": {Content: []byte("HostKey /etc/ssh/ssh_host_rsa_key\n")}}
	for kind, path := range keyFiles() {
		keys[kind] = testkit.NewSigner(t, kind)
		files[path] = lab.File{Content: keys[kind].PEM, Mode: 0o600}
		files[path+".pub"] = lab.File{Content: []byte(keys[kind].Line + "\n")}
	}
	return newHost(t, func(o *lab.HostOptions) { o.Files = files }), keys
}

// pinned is an order to a host with that pin.
func (h target) pinned(t *testing.T, pin string) delivery.Order {
	t.Helper()
	o := h.order(t, "")
	var err error
	o.Target.Pin, err = transport.ParsePin([]byte(pin))
	must(t, err)
	return o
}

// A host with three keys shows the one that is pinned, whichever that is: it is asked for by its type. A client that
// does not say what it wants, as karpenter-provider-ssh does not, is shown one key and never the others.
func TestAHostWithThreeKeysShowsThePinnedOne(t *testing.T) {
	t.Parallel()
	h, keys := newHostWithKeys(t)
	shown := h.shows(t)
	if shown != keys["ecdsa256"].PublicKey().Type() {
		t.Fatalf("unasked the host shows its %s key", shown)
	}
	runs := 0
	accepts := func(name, pin string) {
		t.Helper()
		if r := deliver(t, h.pinned(t, pin)); r.Result != delivery.Succeeded {
			t.Errorf("%s: %+v", name, r)
		}
		runs++
	}
	all := ""
	for kind, key := range keys {
		accepts(kind, key.Line+"\n")
		accepts(kind+" in a known_hosts line", h.Addr.String()+" "+key.Line+"\n")
		all += key.Line + "\n"
	}
	accepts("all three", all)
	strangers := ""
	for kind := range keys {
		line := testkit.NewSigner(t, kind).Line + "\n"
		strangers += line
		h.mismatch(t, "another "+kind, line, "which is not pinned")
	}
	h.mismatch(t, "three others", strangers, "which is not pinned")
	h.mismatch(t, "of a type that it has no key of", testkit.NewSigner(t, "ecdsa384").Line, "no key of a pinned type")
	accepts("one of its own beside one of a type that it lacks", testkit.NewSigner(t, "ecdsa384").Line+"\n"+keys["ed25519"].Line)
	if n := h.ran(t); n != runs {
		t.Errorf("%d runs, want %d", n, runs)
	}
}

// mismatch wants that nothing is sent to a host that is not the pinned one.
func (h target) mismatch(t *testing.T, name, pin, text string) {
	t.Helper()
	before := h.ran(t)
	r, err := delivery.Deliver(t.Context(), h.pinned(t, pin), func() error { return fmt.Errorf("%s: the relay began to send", name) })
	must(t, err)
	if r.Result != delivery.HostKeyMismatch || !strings.Contains(r.Message, text) || h.ran(t) != before {
		t.Errorf("%s: %+v, want HostKeyMismatch with %q", name, r, text)
	}
}

// shows is the type of the key that the host shows to a client that does not ask for one.
func (h target) shows(t *testing.T) string {
	t.Helper()
	var shown string
	conn, err := ssh.Dial("tcp", h.SSHAddr(), &ssh.ClientConfig{
		User: "kpssh", Auth: []ssh.AuthMethod{ssh.PublicKeys(h.login)}, Timeout: time.Minute,
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error { shown = key.Type(); return nil },
	})
	must(t, err)
	must(t, conn.Close())
	return shown
}

// A host CA stands for hosts that are named in its certificates, and for nothing else.
func TestAHostCA(t *testing.T) {
	t.Parallel()
	h, keys := newHostWithKeys(t)
	mine := []string{h.Addr.String()}
	for caKind, cases := range map[string][]struct {
		name, kind string
		names      []string
		change     func(*ssh.Certificate)
		refused    string
	}{
		"ed25519": {
			{"of its Ed25519 key", "ed25519", mine, nil, ""},
			{"of its ECDSA key", "ecdsa256", mine, nil, ""},
			{"of its RSA key", "rsa3072", mine, nil, ""},
			{"for another host", "ed25519", []string{"10.0.0.1"}, nil, "does not hold"},
			{"for a pattern of hosts", "ed25519", []string{"*"}, nil, "does not hold"},
			{"without a name", "ed25519", nil, nil, "does not hold"},
			{"that has ended", "ed25519", mine, func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()) }, "does not hold"},
			{"that begins tomorrow", "ed25519", mine, func(c *ssh.Certificate) { c.ValidAfter = uint64(in(1).Unix()) }, "does not hold"},
			{"with a condition", "ed25519", mine, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"verify-required": ""} }, "does not hold"},
			{"with another name first", "ed25519", []string{"host-b", h.Addr.String()}, nil, ""},
		},
		"rsa3072": {{"by an RSA authority", "ed25519", mine, nil, ""}},
	} {
		ca := testkit.NewSigner(t, caKind)
		pin := "@cert-authority * " + ca.Line + "\n"
		for _, c := range cases {
			h.certify(t, c.kind, testkit.Certify(t, ca, keys[c.kind].PublicKey(), c.names, hostCertificate(c.change)))
			if c.refused != "" {
				h.mismatch(t, c.name, pin, c.refused)
				continue
			}
			if r := deliver(t, h.pinned(t, pin)); r.Result != delivery.Succeeded {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		h.mismatch(t, "by an authority that is not pinned", "@cert-authority * "+testkit.NewSigner(t, "ed25519").Line, "does not hold")
		h.mismatch(t, "by one that is pinned as a host's own key", ca.Line, "")
	}
	h.Must(t, "rm /etc/ssh/sshd_config.d/certificate.conf")
	h.ReloadSSHD(t)
	h.mismatch(t, "without a certificate", "@cert-authority * "+testkit.NewSigner(t, "ed25519").Line, "no key of a pinned type")
}

func hostCertificate(change func(*ssh.Certificate)) func(*ssh.Certificate) {
	return func(c *ssh.Certificate) {
		c.CertType, c.Permissions = ssh.HostCert, ssh.Permissions{}
		c.ValidAfter, c.ValidBefore = uint64(in(-1).Unix()), uint64(in(30).Unix())
		if change != nil {
			change(c)
		}
	}
}

// certify has sshd show a certificate of one of its keys.
func (h target) certify(t *testing.T, kind string, c *ssh.Certificate) {
	t.Helper()
	path := keyFiles()[kind] + "-cert.pub"
	must(t, h.WriteFile(path, ssh.MarshalAuthorizedKey(c), 0o644))
	must(t, h.WriteFile("/etc/ssh/sshd_config.d/certificate.conf", []byte("HostCertificate "+path+"\n"), 0o644))
	h.ReloadSSHD(t)
}
