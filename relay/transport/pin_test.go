package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
)

func pinOf(t *testing.T, text string) Pin {
	t.Helper()
	p, err := ParsePin([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lineOf(t *testing.T, public any) string {
	t.Helper()
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

func ecdsaLine(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return lineOf(t, &key.PublicKey)
}

func TestPinAsksOnlyForWhatItKnows(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ed, _ := fakesshd.Key(t)
	edLine := string(fakesshd.PinText(ed))
	cases := map[string]struct {
		text string
		want []string
	}{
		"a public key line":         {edLine, []string{"ssh-ed25519"}},
		"a line with a comment":     {strings.TrimSpace(edLine) + " root@host-a\n", []string{"ssh-ed25519"}},
		"a known_hosts line":        {"10.0.0.1 " + edLine, []string{"ssh-ed25519"}},
		"a name and a port":         {"[10.0.0.1]:2222,host-a " + edLine, []string{"ssh-ed25519"}},
		"a hashed name":             {"|1|c2FsdHNhbHRzYWx0c2FsdHM=|aGFzaGhhc2hoYXNoaGFzaGg= " + edLine, []string{"ssh-ed25519"}},
		"RSA never asks for SHA-1":  {lineOf(t, &rsaKey.PublicKey), []string{"rsa-sha2-512", "rsa-sha2-256"}},
		"comments and blank lines":  {"# keys of host-a\n\n" + edLine + "\n", []string{"ssh-ed25519"}},
		"two keys":                  {edLine + ecdsaLine(t), []string{"ssh-ed25519", "ecdsa-sha2-nistp256"}},
		"two keys of the same type": {edLine + edLine, []string{"ssh-ed25519"}},
		"a host CA":                 {"@cert-authority *.pool " + edLine, certAlgorithms()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pinOf(t, c.text).Algorithms()); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestParsePinRefuses(t *testing.T) {
	ed, _ := fakesshd.Key(t)
	line := string(fakesshd.PinText(ed))
	cert := &ssh.Certificate{Key: ed.PublicKey(), CertType: ssh.HostCert, Nonce: []byte("n"), ValidPrincipals: []string{"host"}}
	if err := cert.SignCert(rand.Reader, ed); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ text, want string }{
		"nothing":                           {"", "no host key is pinned"},
		"only comments":                     {"# later\n\n", "no host key is pinned"},
		"a fingerprint":                     {"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", "a fingerprint is no pin"},
		"an MD5 fingerprint":                {"MD5:00:11", "a fingerprint is no pin"},
		"a fingerprint beside a key":        {line + "SHA256:47DEQpj8HBSa", "a fingerprint is no pin"},
		"a revoked key":                     {"@revoked * " + line, "@revoked"},
		"a word":                            {"hello", "neither"},
		"a key cut short":                   {line[:40], "no public key"},
		"a certificate":                     {string(ssh.MarshalAuthorizedKey(cert)), "neither"},
		"a certificate in known_hosts form": {"host " + string(ssh.MarshalAuthorizedKey(cert)), "not accepted"},
		"too long":                          {strings.Repeat("#\n", maxPin), "longer than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePin([]byte(c.text))
			wantFault(t, err, HostKeyNotPinned, c.want)
		})
	}
}
