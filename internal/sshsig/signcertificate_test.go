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

// certifiedSigner signs by the key and names the certificate, whatever that says.
type certifiedSigner struct {
	ssh.AlgorithmSigner
	certificate *ssh.Certificate
}

func (s certifiedSigner) PublicKey() ssh.PublicKey { return s.certificate }

func certified(t *testing.T, key testkit.Signer, c *ssh.Certificate) ssh.Signer {
	t.Helper()
	if by, ok := key.Signer.(ssh.AlgorithmSigner); ok {
		return certifiedSigner{by, c}
	}
	signer, err := ssh.NewCertSigner(c, key.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestSignWithACertificateOfEachKeyType(t *testing.T) {
	ca := testkit.NewSigner(t, "ed25519")
	for _, kind := range testkit.KeyTypes() {
		t.Run(kind, func(t *testing.T) {
			user := testkit.NewSigner(t, kind)
			c := testkit.Certify(t, ca, user.PublicKey(), principals, nil)
			signer := certified(t, user, c)
			armored, err := sshsig.SignWithCertificates(rand.Reader, signer, namespace, message)
			if err != nil {
				t.Fatal(err)
			}
			all, err := sshsig.ParseAllWithCertificates(armored)
			if err != nil || len(all) != 1 || all[0].Certificate() == nil || !bytes.Equal(all[0].Certificate().Marshal(), c.Marshal()) {
				t.Fatalf("got %d, %v", len(all), err)
			}
			if err := all[0].Verify(namespace, message); err != nil {
				t.Error(err)
			}
			// Nobody gets one who did not ask for it.
			_, err = sshsig.Sign(rand.Reader, signer, namespace, message)
			want(t, decision.From(err).Reason, decision.KeyTypeRefused)
		})
	}
}

func TestSignWithoutACertificateIsSign(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	armored, err := sshsig.SignWithCertificates(rand.Reader, key, namespace, message)
	if err != nil {
		t.Fatal(err)
	}
	want(t, verdict(string(armored), namespace, message), decision.Verified)
	if !quorumSame(sshsig.CertifiedKey(key.PublicKey()), key.PublicKey()) {
		t.Error("a plain key is not its own")
	}
}

func quorumSame(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

func TestNoSignatureByACertificateThatNobodyTakes(t *testing.T) {
	ca, user, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	for name, tt := range map[string]struct {
		key    testkit.Signer
		change func(*ssh.Certificate)
		after  func(*ssh.Certificate)
		want   decision.Reason
	}{
		"of a host":                 {user, func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, nil, decision.KeyTypeRefused},
		"for nobody":                {user, nil, func(c *ssh.Certificate) { c.ValidPrincipals = nil }, decision.KeyTypeRefused},
		"changed after it was made": {user, nil, func(c *ssh.Certificate) { c.KeyId = "other" }, decision.SignatureInvalid},
		"of another key":            {other, nil, nil, decision.SignatureInvalid},
		"that no text can hold":     {user, func(c *ssh.Certificate) { c.KeyId = strings.Repeat("x", sshsig.MaxArmored) }, nil, decision.SignatureMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			c := testkit.Certify(t, ca, user.PublicKey(), principals, tt.change)
			if tt.after != nil {
				tt.after(c)
			}
			_, err := sshsig.SignWithCertificates(rand.Reader, certified(t, tt.key, c), namespace, message)
			if err == nil {
				t.Fatal("signed")
			}
			want(t, decision.From(err).Reason, tt.want)
		})
	}
}

func TestParseCertificate(t *testing.T) {
	user, ca := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	c := testkit.Certify(t, ca, user.PublicKey(), principals, nil)
	encoded := base64.StdEncoding.EncodeToString(c.Marshal())
	good := ssh.CertAlgoED25519v01 + " " + encoded + " a comment"
	got, err := sshsig.ParseCertificate(good)
	if err != nil || !quorumSame(got, c) || !quorumSame(sshsig.CertifiedKey(got), user.PublicKey()) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, line := range []string{user.Line, "", "not a key"} {
		if got, err := sshsig.ParseCertificate(line); got != nil || err != nil {
			t.Errorf("%q: got %v, %v", line, got, err)
		}
	}
	small := testkit.Certify(t, ca, testkit.NewSigner(t, "rsa2048").PublicKey(), principals, nil)
	for line, reason := range map[string]decision.Reason{
		ssh.CertAlgoRSAv01 + " " + encoded:                      decision.Malformed,
		ssh.CertAlgoED25519v01 + " " + encoded[4:]:              decision.Malformed,
		ssh.CertAlgoED25519v01 + " " + encoded[:len(encoded)-8]: decision.SignatureMalformed,
		good + "\x00": decision.Malformed,
		good + strings.Repeat("x", 2*sshsig.MaxArmored):                               decision.Malformed,
		ssh.CertAlgoRSAv01 + " " + base64.StdEncoding.EncodeToString(small.Marshal()): decision.KeyTypeRefused,
	} {
		got, err := sshsig.ParseCertificate(line)
		if got != nil || err == nil {
			t.Errorf("%.60q: got %v, %v", line, got, err)
			continue
		}
		want(t, decision.From(err).Reason, reason)
	}
}
