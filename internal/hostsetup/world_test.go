package hostsetup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	endpoint = "https://10.0.0.5:6443"
	caDigest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
)

// world has a root and two signers, of which the second is for another class of hosts.
type world struct {
	root, alice, bob, login testkit.Signer
	document                string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		root: testkit.NewSigner(t, "ed25519"), alice: testkit.NewSigner(t, "ed25519"),
		bob: testkit.NewSigner(t, "ecdsa256"), login: testkit.NewSigner(t, "ed25519"),
	}
	w.document = strings.NewReplacer(
		"clusters: {any: {}}", fmt.Sprintf(`clusters: {prod-1: {endpoints: [%q], caSHA256: [%q]}, bare-1: {}, half-1: {endpoints: [%q]}}`, endpoint, caDigest, endpoint),
		`name: signer-1`, `targets: ["class large"], name: signer-1`,
	).Replace(testkit.PolicyDocument(w.alice, w.bob)) + "revoked: {signers: []}\nfloors: {tls-bootstrap: 40, \"web-*\": 1}\n"
	return w
}

func (w *world) policy(t *testing.T) *trustpolicy.Policy {
	t.Helper()
	signed := trustpolicy.Signed{Document: []byte(w.document), Signatures: []string{testkit.Sign(t, w.root, trustpolicy.Namespace, []byte(w.document))}}
	p, err := trustpolicy.Authenticate(signed, testkit.Roots(t, w.root))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shipped are the real files of shim/.
func shipped(t *testing.T) Shipped {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(testkit.Root(t), "shim", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return Shipped{Shim: read("kpssh-shim"), SSHD: read("etc/sshd_config.d/kpssh.conf"), Sudoers: read("etc/sudoers.d/kpssh"), AuthorizedKeys: read("etc/authorized_keys")}
}

func (w *world) options() Options {
	o := Options{WarrantRequired: true, From: []string{"10.0.0.0/8", "192.0.2.5"}}
	o.Class, o.Cluster = "small", "prod-1"
	o.KubeletKey = KubeletKey
	o.LoginKeys = append(o.LoginKeys, w.login.PublicKey())
	return o
}

func (w *world) setup(t *testing.T) *Setup {
	t.Helper()
	s, _, err := New(w.policy(t), testkit.Now(), shipped(t), w.options())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	if err == nil || decision.From(err).Reason != want {
		t.Errorf("want %s, got %v", want, err)
	}
}

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }
