package shimhost

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
)

// The places that the shim knows (docs/spec/shim.md, Files).
const (
	Shim  = "/opt/kpssh/kpssh-shim"
	Etc   = "/etc/kpssh"
	State = "/var/lib/hostwarrant"
	Work  = "/run/kpssh"
)

// What a host is and knows.
const (
	Cluster  = "lab"
	Class    = "pool"
	Endpoint = "https://192.0.2.10:6443"
	Profile  = "tls-bootstrap" // has a floor, as all of other-* have
)

// CA is the bundle that the host has pinned.
func CA() []byte {
	return []byte("-----BEGIN CERTIFICATE-----\n" + strings.Repeat("QUJDREVG", 150) + "\n-----END CERTIFICATE-----\n")
}

// Host is a provisioned host: one signer of everything, one root, one revoked key.
type Host struct {
	Signer, Root ssh.Signer
	Made         time.Time
}

// New provisions a host in the namespaces of a program that Again started, with the shim
// at path. Settings are more lines of shim.conf.
func New(path, settings string) (*Host, error) {
	if !Inside() {
		return nil, fmt.Errorf("not in a namespace of its own: start it with Again")
	}
	if err := mountPlaces(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(Shim, text, 0o755); err != nil {
		return nil, err
	}
	h := &Host{Made: time.Now()}
	if h.Signer, err = NewKey(); err != nil {
		return nil, err
	}
	if h.Root, err = NewKey(); err != nil {
		return nil, err
	}
	return h, h.writeTrust(settings)
}

// NewKey makes a key of its own for a signer or a root.
func NewKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(private)
}

// PublicLine is the public key as it stands in allowed_signers.
func PublicLine(s ssh.Signer) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(s.PublicKey())), "\n")
}

// writeTrust writes every file of /etc/kpssh.
func (h *Host) writeTrust(settings string) error {
	revoked, err := NewKey()
	if err != nil {
		return err
	}
	list, err := krl.Render([]string{sshsig.Fingerprint(revoked.PublicKey())}, 1, time.Now())
	if err != nil {
		return err
	}
	ca := sha256.Sum256(CA())
	for name, content := range map[string]string{
		"allowed_signers": h.SignerLine() + "\n",
		"root_signers":    `root namespaces="hostwarrant-statement" ` + PublicLine(h.Root) + "\n",
		"revoked_keys":    string(list),
		"cluster":         "id " + Cluster + "\nendpoint " + Endpoint + "\nca-sha256 " + hex.EncodeToString(ca[:]) + "\n",
		"floors":          Profile + " 1\nother-* 1\n",
		"shim.conf":       fmt.Sprintf("class=%s\nmax-validity=90d\nsigners-expire=%d\n%s", Class, time.Now().Add(90*24*time.Hour).Unix(), settings),
	} {
		if err := os.WriteFile(filepath.Join(Etc, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
