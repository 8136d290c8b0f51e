package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestInspectTellsWhatEachSignatureCovers(t *testing.T) {
	w := newWorld(t)
	signatures := w.signedBy(w.alice, goodScripts())
	signatures[script.Leave] = "junk"
	changed := goodScripts()
	changed[script.Join] = "echo other\n"
	delete(signatures, script.Install)
	path := w.write("p.json", w.profile(changed, signatures))
	r := w.hostwarrant("inspect", path)
	for _, want := range []string{
		"SSHJoinProfile/tls-bootstrap\n",
		"    no signature\n",
		"    signature: ssh-ed25519 " + w.alice.Fingerprint + ", namespace kpssh, sha512, covers: no (SignatureInvalid",
		"    signature: unreadable: SignatureMalformed",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("want %q in\n%s", want, r.out)
		}
	}
	if r.code != exitDone {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	r = w.hostwarrant("inspect", path, "-o", "json")
	var found []finding
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found) != 1 || len(found[0].Parts) != 3 {
		t.Fatalf("%v: %s", err, r.out)
	}
	if p := found[0].Parts[1]; p.Name != "join" || len(p.Signatures) != 1 || p.Signatures[0].Covers || p.Signatures[0].Key != w.alice.Fingerprint {
		t.Errorf("got %+v", p)
	}
}

func TestInspectShowsHostsDirectoriesAndProblems(t *testing.T) {
	w := newWorld(t)
	w.write("d/host.yaml", "apiVersion: karpenter.dklesev.github.io/v1beta1\nkind: SSHHost\nmetadata: {name: h}\nspec: {execMode: Verified, trustedSigners: ["+w.alice.Line+"]}\n")
	w.write("d/twice.yaml", "apiVersion: karpenter.dklesev.github.io/v1beta1\nkind: SSHHost\nmetadata: {name: h}\nspec: {a: b, a: c}\n")
	w.write("d/other.yaml", "kind: ConfigMap\nmetadata: {name: c}\n")
	w.write("d/tls/join.sh", "echo join\n")
	w.write("d/tls/join.sh.sig", testkit.Sign(t, w.alice, "kpssh", []byte("echo join\n")))
	r := w.hostwarrant("inspect", w.path("d"))
	p := object.JoinProfile{Scripts: map[script.Phase]string{script.Join: "echo join\n"}}
	for _, want := range []string{
		"content digest: sha256:", "profile digest: " + p.Digest(),
		"execMode: Verified", "trusted signer: ssh-ed25519 " + w.alice.Fingerprint, "stands twice", "SSHJoinProfile/tls\n", "covers: yes",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("want %q in\n%s", want, r.out)
		}
	}
	if r.code != exitDone || !strings.Contains(r.err, "ConfigMap/c is of no kind that is guarded") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

func TestInspectShowsStatements(t *testing.T) {
	w := newWorld(t)
	path := w.path("floor.statement")
	args := []string{"statement", "sign", "floor", "--serial", "4", "--floor", "tls=40", "--cluster", "prod-1", "--key", w.key("root", w.root), "-o", path}
	if r := w.hostwarrant(args...); r.code != exitDone {
		t.Fatal(r.err)
	}
	r := w.hostwarrant("inspect", path)
	for _, says := range []string{"kind: floor", "serial: 4", "for: cluster prod-1", w.root.Fingerprint + ", namespace hostwarrant-statement, sha512, covers: yes"} {
		if r.code != exitDone || !strings.Contains(r.out, says) {
			t.Errorf("want %q, got exit %d, %s%s", says, r.code, r.out, r.err)
		}
	}
	wantRefused(t, w.hostwarrant("verify", path, "--policy", w.policy, "--root", w.pubs), "Malformed")
	broken := w.hostwarrant("inspect", w.write("broken.statement", strings.Replace(w.read(path), "serial 4", "serial 04", 1)))
	if broken.code != exitDone || !strings.Contains(broken.out, "problem: ") {
		t.Errorf("exit %d, %s", broken.code, broken.out)
	}
}
