package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/signer/keyring"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// world is a directory with a root, signers and a policy that names them.
type world struct {
	t            *testing.T
	dir          string
	root         testkit.Signer
	alice, bob   testkit.Signer
	stranger     testkit.Signer
	policy, pubs string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.root, w.alice = testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.bob, w.stranger = testkit.NewSigner(t, "ecdsa256"), testkit.NewSigner(t, "ed25519")
	w.pubs = w.write("root.pub", w.root.Line+"\n")
	w.policy = w.writePolicy("policy.json", testkit.PolicyDocument(w.alice, w.bob))
	return w
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	return testkit.WriteFile(w.t, w.dir, name, []byte(text))
}

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// policyObject writes a TrustPolicy object as JSON, signed by the given roots.
func (w *world) policyObject(document string, roots ...testkit.Signer) string {
	w.t.Helper()
	signatures := []string{}
	for _, r := range roots {
		signatures = append(signatures, testkit.Sign(w.t, r, trustpolicy.Namespace, []byte(document)))
	}
	return w.json(map[string]any{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"document": document, "signatures": signatures},
	})
}

func (w *world) writePolicy(name, document string) string {
	w.t.Helper()
	return w.write(name, w.policyObject(document, w.root))
}

func (w *world) json(v any) string {
	w.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// scripts is a profile's phases, good unless a test changes them.
func goodScripts() map[script.Phase]string {
	return map[script.Phase]string{
		script.Install: "#!/bin/sh\necho install\n", script.Join: "#!/bin/sh\necho join\n", script.Leave: "#!/bin/sh\necho leave\n",
	}
}

// signedBy signs every phase.
func (w *world) signedBy(key testkit.Signer, scripts map[script.Phase]string) map[script.Phase]string {
	w.t.Helper()
	all := map[script.Phase]string{}
	for phase, text := range scripts {
		all[phase] = testkit.Sign(w.t, key, script.Namespace, []byte(text))
	}
	return all
}

func (w *world) profile(scripts, signatures any) string {
	w.t.Helper()
	spec := map[string]any{"scripts": scripts}
	if signatures != nil {
		spec["signatures"] = signatures
	}
	return w.json(map[string]any{
		"apiVersion": profileAPIVersion, "kind": "SSHJoinProfile", "metadata": map[string]any{"name": "tls-bootstrap"}, "spec": spec,
	})
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// hostwarrant calls the command as main does, at the tests' own time.
func (w *world) hostwarrant(args ...string) result { return w.withInput("", args...) }

func (w *world) withInput(stdin string, args ...string) result {
	w.t.Helper()
	return w.at(testkit.Now(), stdin, args...)
}

func (w *world) at(now time.Time, stdin string, args ...string) result {
	w.t.Helper()
	var out, errs bytes.Buffer
	c := &cli{
		in: strings.NewReader(stdin), out: &out, err: &errs, rand: rand.Reader, now: func() time.Time { return now },
		keys: keyring.Source{Passphrase: func(string) ([]byte, error) { return nil, errors.New("there is no terminal to ask for it") }},
	}
	code := c.run(context.Background(), args)
	return result{code, out.String(), errs.String()}
}

// verify judges one text.
func (w *world) verify(text string) result {
	w.t.Helper()
	return w.hostwarrant("verify", w.write("object.json", text), "--policy", w.policy, "--root", w.pubs)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// wantRefused asserts exit 1 and the Reason on stdout.
func wantRefused(t *testing.T, r result, reason string) {
	t.Helper()
	if r.code != exitRefused || !strings.Contains(r.out, ": "+reason+": ") {
		t.Errorf("want exit 1 with %s, got exit %d, stdout %q, stderr %q", reason, r.code, r.out, r.err)
	}
}

func wantVerified(t *testing.T, r result) {
	t.Helper()
	if r.code != exitDone || !strings.Contains(r.out, ": verified: ") {
		t.Errorf("want exit 0, got exit %d, stdout %q, stderr %q", r.code, r.out, r.err)
	}
}

func wantFailed(t *testing.T, r result, code int, word string) {
	t.Helper()
	if r.code != code || r.out != "" || !strings.Contains(r.err, word) || !strings.Contains(r.err, "hostwarrant: error: ") {
		t.Errorf("want exit %d and %q on stderr only, got exit %d, stdout %q, stderr %q", code, word, r.code, r.out, r.err)
	}
}
