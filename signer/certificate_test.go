package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/signer/keyring"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// What a certificate signed verifies where the policy names its authority, for the scripts it names.
func TestTheClusterTakesWhatACertificateSigned(t *testing.T) {
	w := newWorld(t)
	ca, user, scripts := testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519"), goodScripts()
	var principals []string
	for phase := range scripts {
		principals = append(principals, string(phase)+"@tls-bootstrap")
	}
	w.write("k", string(user.PEM))
	w.certificate("k-cert.pub", testkit.Certify(t, ca, user.PublicKey(), principals, nil))
	signer, _, err := keyring.Source{}.Load(w.path("k-cert.pub"))
	if err != nil {
		t.Fatal(err)
	}
	signatures := map[script.Phase]string{}
	for phase, text := range scripts {
		armored, err := sshsig.SignWithCertificates(rand.Reader, signer, script.Namespace, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		signatures[phase] = string(armored)
	}
	profile := w.profile(scripts, signatures)
	wantRefused(t, w.verify(profile), "SignerUnknown")
	people := fmt.Sprintf("  - {name: people, key: %q, certAuthority: true}\n", ca.Line)
	w.policy = w.writePolicy("ca.json", testkit.PolicyDocument(w.alice)+people)
	wantVerified(t, w.verify(profile))
	wantRefused(t, w.verify(strings.ReplaceAll(profile, "tls-bootstrap", "other")), "SignerScope")
}

// sign itself takes the file of a certificate, and replaces its own signature when it signs again.
func TestSignByACertificate(t *testing.T) {
	w := newWorld(t)
	ca, user := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	principals := []string{"install@tls-bootstrap", "join@tls-bootstrap", "leave@tls-bootstrap"}
	w.write("k", string(user.PEM))
	key := w.certificate("k-cert.pub", testkit.Certify(t, ca, user.PublicKey(), principals, nil))
	path := w.write("p.json", w.profile(goodScripts(), nil))
	people := fmt.Sprintf("  - {name: people, key: %q, certAuthority: true}\n", ca.Line)
	w.policy = w.writePolicy("ca.json", testkit.PolicyDocument(w.alice)+people)
	for range 2 {
		if r := w.hostwarrant("sign", "-i", path, "--key", key, "--policy", w.policy, "--root", w.pubs); r.code != exitDone {
			t.Fatalf("exit %d, %q", r.code, r.err)
		}
	}
	wantVerified(t, w.verify(w.read(path)))
	if n := strings.Count(w.read(path), "BEGIN SSH"); n != len(principals) {
		t.Errorf("%d signatures", n)
	}
	wantFailed(t, w.at(testkit.Now().Add(2*time.Hour), "", "sign", path, "--key", key), exitUndecided, "Expired")
}

func (w *world) certificate(name string, c *ssh.Certificate) string {
	w.t.Helper()
	return w.write(name, c.Type()+" "+base64.StdEncoding.EncodeToString(c.Marshal())+"\n")
}

func TestACertificateIsJudgedBeforeItSigns(t *testing.T) {
	w := newWorld(t)
	w.write("k", string(w.alice.PEM))
	path := w.certificate("k-cert.pub", testkit.Certify(t, w.bob, w.alice.PublicKey(), []string{"kpssh"}, nil))
	args := []string{"sig", "sign", "-f", path, "-n", "kpssh"}
	if r := w.at(testkit.Now(), "text\n", args...); r.code != exitDone || r.err != "" {
		t.Errorf("exit %d, %q", r.code, r.err)
	}
	wantFailed(t, w.at(testkit.Now().Add(2*time.Hour), "text\n", args...), exitUndecided, "Expired")
	wantFailed(t, w.at(testkit.Now().Add(-2*time.Hour), "text\n", args...), exitUndecided, "NotYetValid")
}

func TestARootSignsWithoutACertificate(t *testing.T) {
	w := newWorld(t)
	w.write("k", string(w.root.PEM))
	path := w.certificate("k-cert.pub", testkit.Certify(t, w.bob, w.root.PublicKey(), []string{"root"}, nil))
	policy := w.write("p.json", w.policyObject(testkit.PolicyDocument(w.alice)))
	wantFailed(t, w.hostwarrant("policy", "sign", policy, "--key", path), exitUndecided, "KeyTypeRefused: a root signs with its own key")
}
