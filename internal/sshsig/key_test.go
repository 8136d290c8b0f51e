package sshsig_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestParsePublicKey(t *testing.T) {
	for _, kind := range testkit.KeyTypes() {
		s := testkit.NewSigner(t, kind)
		key, comment, err := sshsig.ParsePublicKey(s.Line + " alice at home")
		if err != nil || comment != "alice at home" || sshsig.Fingerprint(key) != s.Fingerprint {
			t.Errorf("%s: %v, comment %q", kind, err, comment)
		}
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	line := testkit.NewSigner(t, "ed25519").Line
	keyType, encoded, _ := strings.Cut(line, " ")
	small := testkit.NewSigner(t, "rsa2048")
	tests := map[string]struct {
		line string
		want decision.Reason
	}{
		"nothing":                        {"", decision.Malformed},
		"a type alone":                   {keyType, decision.Malformed},
		"base64 alone":                   {encoded, decision.Malformed},
		"an option before it":            {"restrict " + line, decision.Malformed},
		"a leading space":                {" " + line, decision.Malformed},
		"two spaces":                     {keyType + "  " + encoded, decision.Malformed},
		"a tab":                          {keyType + "\t" + encoded, decision.Malformed},
		"a second line":                  {line + "\n" + line, decision.Malformed},
		"a NUL in the comment":           {line + " a\x00b", decision.Malformed},
		"a type that is not its own":     {"ssh-rsa " + encoded, decision.Malformed},
		"base64 with junk":               {line[:len(line)-4] + "!!!!", decision.Malformed},
		"base64 cut":                     {line[:len(line)-8], decision.SignatureMalformed},
		"an RSA key of 2048 bits":        {small.Line, decision.KeyTypeRefused},
		"a DSA key":                      {"ssh-dss " + base64.StdEncoding.EncodeToString(wire("ssh-dss")), decision.KeyTypeRefused},
		"a number with a zero before it": {paddedRSA(t), decision.SignatureMalformed},
		"a certificate":                  {certificate(t), decision.KeyTypeRefused},
		"a token's NUL":                  {skWithNUL(t), decision.KeyTypeRefused},
		"a line of 9000 bytes":           {line + " " + strings.Repeat("x", 9000), decision.Malformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := sshsig.ParsePublicKey(tt.line)
			if err == nil {
				t.Fatal("accepted")
			}
			want(t, decision.From(err).Reason, tt.want)
		})
	}
}

func TestCheckKeyRefusesWhatDidNotComeThroughParse(t *testing.T) {
	cert, _, _, _, err := ssh.ParseAuthorizedKey([]byte(certificate(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := sshsig.CheckKey(cert); decision.From(err).Reason != decision.KeyTypeRefused {
		t.Errorf("CheckKey of a certificate: %v", err)
	}
	if err := sshsig.CheckKey(testkit.NewSigner(t, "rsa2048").PublicKey()); decision.From(err).Reason != decision.KeyTypeRefused {
		t.Errorf("CheckKey of a small RSA key: %v", err)
	}
	if err := sshsig.CheckKey(testkit.NewSigner(t, "rsa3072").PublicKey()); err != nil {
		t.Errorf("CheckKey of RSA 3072: %v", err)
	}
}

func TestCertificateAsSigner(t *testing.T) {
	signer := testkit.NewSigner(t, "ed25519")
	blob := testkit.NewBlob(t, signer, namespace, message)
	cert, _, _, _, err := ssh.ParseAuthorizedKey([]byte(certificate(t)))
	if err != nil {
		t.Fatal(err)
	}
	blob.Key = cert.Marshal()
	want(t, verdict(blob.Armor(), namespace, message), decision.KeyTypeRefused)
}

// certificate is a user certificate line that ssh-keygen would take as a signer.
func certificate(t *testing.T) string {
	t.Helper()
	ca, user := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	cert := &ssh.Certificate{Key: user.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"kpssh"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca.Signer); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(cert)))
}

// paddedRSA is an RSA key whose modulus has one zero byte too many: other readers take it for the
// same key.
func paddedRSA(t *testing.T) string {
	t.Helper()
	var raw struct {
		Type string
		E, N []byte
	}
	if err := ssh.Unmarshal(testkit.NewSigner(t, "rsa3072").PublicKey().Marshal(), &raw); err != nil {
		t.Fatal(err)
	}
	raw.N = append([]byte{0}, raw.N...)
	blob := ssh.Marshal(raw)
	if _, err := ssh.ParsePublicKey(blob); err != nil {
		t.Fatalf("the library refuses it by itself: %v", err)
	}
	return raw.Type + " " + base64.StdEncoding.EncodeToString(blob)
}

// skWithNUL is a security key that ssh-keygen does not read.
func skWithNUL(t *testing.T) string {
	t.Helper()
	key := testkit.NewSigner(t, "sk-ed25519").PublicKey()
	blob := bytes.Replace(key.Marshal(), wire("ssh:"), wire("s\x00h:"), 1)
	return key.Type() + " " + base64.StdEncoding.EncodeToString(blob)
}
