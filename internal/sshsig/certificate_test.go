package sshsig_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var principals = []string{"join@tls-bootstrap", "kpssh"}

func TestCertificateOfEachKeyTypeAndAuthority(t *testing.T) {
	for _, kind := range testkit.KeyTypes() {
		t.Run(kind, func(t *testing.T) {
			user, ca := testkit.NewSigner(t, kind), testkit.NewSigner(t, kind)
			c := testkit.Certify(t, ca, user.PublicKey(), principals, nil)
			armored := testkit.WithCertificate(t, testkit.Sign(t, user, namespace, message), c)

			all, err := sshsig.ParseAllWithCertificates([]byte(armored))
			if err != nil || len(all) != 1 {
				t.Fatalf("parsed %d, %v", len(all), err)
			}
			s := all[0]
			if s.Certificate() == nil || !bytes.Equal(s.Certificate().Marshal(), c.Marshal()) {
				t.Error("the certificate is not the one that was put in")
			}
			if sshsig.Fingerprint(s.PublicKey()) != user.Fingerprint {
				t.Errorf("the key is %s, want the certified key", sshsig.Fingerprint(s.PublicKey()))
			}
			if err := s.Verify(namespace, message); err != nil {
				t.Error(err)
			}
			if err := sshsig.CheckCertificate(s.Certificate(), testkit.Now()); err != nil {
				t.Error(err)
			}
			_, err = sshsig.ParseAll([]byte(armored))
			want(t, decision.From(err).Reason, decision.KeyTypeRefused)
		})
	}
}

func TestRawKeyHasNoCertificate(t *testing.T) {
	signer := testkit.NewSigner(t, "ed25519")
	all, err := sshsig.ParseAllWithCertificates([]byte(testkit.Sign(t, signer, namespace, message)))
	if err != nil || all[0].Certificate() != nil || sshsig.Fingerprint(all[0].PublicKey()) != signer.Fingerprint {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestCheckCertificate(t *testing.T) {
	user, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	now := testkit.Now()
	second := func(d time.Duration) uint64 { return uint64(now.Add(d).Unix()) }
	many := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	tests := map[string]struct {
		change func(*ssh.Certificate)
		want   decision.Reason
	}{
		"as issued":                         {nil, decision.Verified},
		"of a host":                         {func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, decision.KeyTypeRefused},
		"of no type":                        {func(c *ssh.Certificate) { c.CertType = 0 }, decision.KeyTypeRefused},
		"with a known critical option":      {func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "true"} }, decision.KeyTypeRefused},
		"with an unknown critical option":   {func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x@example.org": ""} }, decision.KeyTypeRefused},
		"with an unknown extension":         {func(c *ssh.Certificate) { c.Extensions = map[string]string{"x@example.org": "y"} }, decision.Verified},
		"without extensions":                {func(c *ssh.Certificate) { c.Extensions = nil }, decision.Verified},
		"without principals":                {func(c *ssh.Certificate) { c.ValidPrincipals = nil }, decision.KeyTypeRefused},
		"with 256 principals":               {func(c *ssh.Certificate) { c.ValidPrincipals = many(256) }, decision.Verified},
		"with 257 principals":               {func(c *ssh.Certificate) { c.ValidPrincipals = many(257) }, decision.KeyTypeRefused},
		"with a NUL in a principal":         {func(c *ssh.Certificate) { c.ValidPrincipals = []string{"kpssh\x00x"} }, decision.KeyTypeRefused},
		"with a NUL in the key id":          {func(c *ssh.Certificate) { c.KeyId = "a\x00b" }, decision.KeyTypeRefused},
		"without an end":                    {func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, decision.KeyTypeRefused},
		"with an end after the year 9999":   {func(c *ssh.Certificate) { c.ValidBefore = 253402300800 }, decision.KeyTypeRefused},
		"with an end in the year 9999":      {func(c *ssh.Certificate) { c.ValidBefore = 253402300799 }, decision.Verified},
		"that ends now":                     {func(c *ssh.Certificate) { c.ValidBefore = second(0) }, decision.Expired},
		"that ends in a second":             {func(c *ssh.Certificate) { c.ValidBefore = second(time.Second) }, decision.Verified},
		"that starts now":                   {func(c *ssh.Certificate) { c.ValidAfter = second(0) }, decision.Verified},
		"that starts in a second":           {func(c *ssh.Certificate) { c.ValidAfter = second(time.Second) }, decision.NotYetValid},
		"that starts at the end of time":    {func(c *ssh.Certificate) { c.ValidAfter = 1<<64 - 1 }, decision.NotYetValid},
		"that starts at the start of time":  {func(c *ssh.Certificate) { c.ValidAfter = 0 }, decision.Verified},
		"for a key of 2048 bits":            {func(c *ssh.Certificate) { c.Key = testkit.NewSigner(t, "rsa2048").PublicKey() }, decision.KeyTypeRefused},
		"changed after it was signed":       later(decision.SignatureInvalid),
		"signed by another than it names":   later(decision.SignatureInvalid),
		"without a signature":               later(decision.KeyTypeRefused),
		"with an RSA CA of 2048 bits":       later(decision.KeyTypeRefused),
		"with a CA signature by SHA-1":      later(decision.KeyTypeRefused),
		"with a CA token not touched":       later(decision.SignatureInvalid),
		"with a CA that is a certificate":   later(decision.KeyTypeRefused),
		"with a padded CA signature":        later(decision.SignatureMalformed),
		"with bytes after the CA signature": later(decision.SignatureMalformed),
		"of a certificate":                  later(decision.KeyTypeRefused),
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := testkit.Certify(t, ca, user.PublicKey(), principals, tt.change)
			damage(t, name, c)
			wantCertificate(t, sshsig.CheckCertificate(c, now), tt.want)
		})
	}
	wantCertificate(t, sshsig.CheckCertificate(nil, now), decision.KeyTypeRefused)
	wantCertificate(t, sshsig.CheckCertificate(testkit.Certify(t, ca, user.PublicKey(), principals, nil), time.Unix(-1, 0)), decision.NotYetValid)
}

// TestAHostsCertificateIsNoUsers: of what a host shows all holds that holds of a user's, but for the type.
func TestAHostsCertificateIsNoUsers(t *testing.T) {
	host, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	for name, tt := range map[string]struct {
		change func(*ssh.Certificate)
		want   decision.Reason
	}{
		"of a host":              {func(*ssh.Certificate) {}, decision.Verified},
		"of a user":              {func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, decision.KeyTypeRefused},
		"of no type":             {func(c *ssh.Certificate) { c.CertType = 0 }, decision.KeyTypeRefused},
		"with a critical option": {func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x@example.org": ""} }, decision.KeyTypeRefused},
		"without principals":     {func(c *ssh.Certificate) { c.ValidPrincipals = nil }, decision.KeyTypeRefused},
		"without an end":         {func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, decision.KeyTypeRefused},
		"that has ended":         {func(c *ssh.Certificate) { c.ValidBefore = uint64(testkit.Now().Unix()) }, decision.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			c := testkit.Certify(t, ca, host.PublicKey(), []string{"10.0.0.7"}, func(c *ssh.Certificate) {
				c.CertType = ssh.HostCert
				tt.change(c)
			})
			wantCertificate(t, sshsig.CheckHostCertificate(c, testkit.Now()), tt.want)
		})
	}
	changed := testkit.Certify(t, ca, host.PublicKey(), []string{"10.0.0.7"}, func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
	changed.ValidPrincipals = []string{"10.0.0.8"}
	wantCertificate(t, sshsig.CheckHostCertificate(changed, testkit.Now()), decision.SignatureInvalid)
}

// later is a case that damage makes, after the CA signed.
func later(want decision.Reason) struct {
	change func(*ssh.Certificate)
	want   decision.Reason
} {
	return struct {
		change func(*ssh.Certificate)
		want   decision.Reason
	}{nil, want}
}

// damage alters a certificate after its CA signed it, or has another CA sign it.
func damage(t *testing.T, name string, c *ssh.Certificate) {
	t.Helper()
	switch name {
	case "changed after it was signed":
		c.ValidPrincipals = append(c.ValidPrincipals, "leave@*")
	case "signed by another than it names":
		named := c.SignatureKey
		testkit.SignCertificate(t, testkit.NewSigner(t, "ecdsa256"), c)
		c.SignatureKey = named
	case "without a signature":
		c.Signature = nil
	case "with an RSA CA of 2048 bits":
		testkit.SignCertificate(t, testkit.NewSigner(t, "rsa2048"), c)
	case "with a CA signature by SHA-1":
		ca := testkit.NewSigner(t, "rsa3072")
		testkit.SignCertificate(t, testkit.Signer{Signer: onlySHA1{ca.Signer}}, c)
	case "with a CA token not touched":
		testkit.SignCertificate(t, testkit.NewSigner(t, "sk-ed25519-untouched"), c)
	case "with a CA that is a certificate":
		middle := testkit.NewSigner(t, "ed25519")
		testkit.SignCertificate(t, middle, c)
		c.SignatureKey = testkit.Certify(t, testkit.NewSigner(t, "ed25519"), middle.PublicKey(), principals, nil)
	case "with a padded CA signature":
		c.Signature = &ssh.Signature{Format: c.Signature.Format, Blob: append(wire("\x00\x01"), wire("\x01")...)}
	case "with bytes after the CA signature":
		c.Signature.Rest = []byte{0}
	case "of a certificate":
		c.Key = testkit.Certify(t, testkit.NewSigner(t, "ed25519"), c.Key, principals, nil)
	}
}

func wantCertificate(t *testing.T, err error, reason decision.Reason) {
	t.Helper()
	if reason == decision.Verified {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("accepted, want %s", reason)
		return
	}
	want(t, decision.From(err).Reason, reason)
}

func TestParseRefusesOtherCertificates(t *testing.T) {
	user, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	good := testkit.Certify(t, ca, user.PublicKey(), principals, nil)
	signed := testkit.Sign(t, user, namespace, message)
	small := testkit.NewSigner(t, "rsa2048")
	host := testkit.Certify(t, ca, small.PublicKey(), principals, nil)
	tests := map[string]struct {
		blob []byte
		want decision.Reason
	}{
		"cut short":                    {good.Marshal()[:100], decision.SignatureMalformed},
		"bytes after it":               {append(good.Marshal(), 0), decision.SignatureMalformed},
		"another type than its key":    {bytes.Replace(good.Marshal(), wire(ssh.CertAlgoED25519v01), wire(ssh.CertAlgoSKED25519v01), 1), decision.SignatureMalformed},
		"an RSA key of 2048 bits":      {host.Marshal(), decision.KeyTypeRefused},
		"a type that names a hash":     {bytes.Replace(host.Marshal(), wire(ssh.CertAlgoRSAv01), wire(ssh.CertAlgoRSASHA512v01), 1), decision.KeyTypeRefused},
		"an option with an empty text": {spelled(t, ca, user, "\x00\x00\x00\x00"), decision.SignatureMalformed},
		"an option that is bare":       {spelled(t, ca, user, "x"), decision.SignatureMalformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			blob := testkit.ParseBlob(t, signed)
			blob.Key = tt.blob
			_, err := sshsig.ParseAllWithCertificates([]byte(blob.Armor()))
			if err == nil {
				t.Fatal("parsed")
			}
			want(t, decision.From(err).Reason, tt.want)
		})
	}
}

// spelled is a certificate whose one extension has the given raw value; its CA signed it so.
func spelled(t *testing.T, ca, user testkit.Signer, value string) []byte {
	t.Helper()
	c := testkit.Certify(t, ca, user.PublicKey(), principals, func(c *ssh.Certificate) { c.Extensions = map[string]string{"zz": ""} })
	unsigned := *c
	unsigned.Signature = nil
	plain := append(wire("zz"), wire("")...)
	odd := append(wire("zz"), wire(value)...)
	data := bytes.Replace(unsigned.Marshal(), wire(string(plain)), wire(string(odd)), 1)
	data = data[:len(data)-4]
	signature, err := ca.Sign(rand.Reader, data)
	if err != nil {
		t.Fatal(err)
	}
	return append(data, wire(string(ssh.Marshal(signature)))...)
}

// TestPublishedCertificates says of each published certificate why it may not sign today.
func TestPublishedCertificates(t *testing.T) {
	reasons := map[string]string{
		"ecdsa_1":           "not a user certificate",
		"ecdsa_sk1":         "not a user certificate",
		"ed25519_1":         "not a user certificate",
		"ed25519_sk1":       "not a user certificate",
		"mldsa44_ed25519_1": "may not sign",
		"rsa_1":             "RSA key of 1024 bits",
		"rsa_1_sha1":        "RSA key of 1024 bits",
		"rsa_1_sha512":      "RSA key of 1024 bits",
	}
	dir := testkit.CorpusDir(t, opensshKeys)
	files, err := filepath.Glob(dir + "/*-cert.pub")
	if err != nil || len(files) != len(reasons) {
		t.Fatalf("found %d certificates, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), "-cert.pub")
		t.Run(name, func(t *testing.T) {
			line, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			err = judge(t, string(line))
			if err == nil || reasons[name] == "" || !strings.Contains(err.Error(), reasons[name]) {
				t.Errorf("got %v, want %q", err, reasons[name])
			}
			want(t, decision.From(err).Reason, decision.KeyTypeRefused)
		})
	}
}

// judge checks the certificate of a line by itself, and where it cannot be read, as part of a signature.
func judge(t *testing.T, line string) error {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if c, ok := key.(*ssh.Certificate); err == nil && ok {
		return sshsig.CheckCertificate(c, testkit.Now())
	}
	blob := testkit.NewBlob(t, testkit.NewSigner(t, "ed25519"), namespace, message)
	blob.Key = unbase64(t, strings.Fields(line)[1])
	_, err = sshsig.ParseAllWithCertificates([]byte(blob.Armor()))
	return err
}
