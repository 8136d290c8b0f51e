package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
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

// floorStatement writes and signs one.
func floorStatement(t *testing.T, w *world) (path string) {
	t.Helper()
	path = w.path("floor-4.statement")
	if r := w.hostwarrant("statement", "sign", "floor", "--serial", "4", "--floor", "tls=40", "--cluster", "prod-1", "--key", w.key("root", w.root), "-o", path); r.code != exitDone {
		t.Fatal(r.err)
	}
	return path
}

func TestInspectShowsStatements(t *testing.T) {
	w := newWorld(t)
	path := floorStatement(t, w)
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

// What a warrant lets in is what a reader has to know before he vouches for it: by name, and whether it is secret or needed.
func TestInspectShowsWhatAWarrantSays(t *testing.T) {
	w := newWorld(t)
	const block = "#!/usr/bin/env bash\n#warrant: v1\n#warrant: profile tls\n#warrant: phase join\n#warrant: serial 7\n"
	leave := strings.Repeat("ab", 32)
	long := "KPSSH_VAR_zone optional enum " + strings.Repeat("a", 150) + " " + strings.Repeat("b", 150)
	path := w.write("tls/join.sh", block+"#warrant: not-after 1802776000\n#warrant: leave-sha256 "+leave+"\n#warrant: target class a\n#warrant: target class b\n"+
		"#warrant: param KPSSH_TOKEN required secret re [a-z]{6}[.]x\n#warrant: param KPSSH_VAR_dns optional type ip\n#warrant: param "+long+"\n#warrant: timeout 30\n#warrant: end\necho\n")
	w.write("tls/leave.sh", strings.Replace(block, "join", "leave", 1)+"#warrant: not-after never\n#warrant: target any\n#warrant: end\necho\n")
	text := w.hostwarrant("inspect", filepath.Dir(path))
	for _, line := range []string{
		"  join: warrant: serial 7, until 2027-02-16T11:06:40Z, for class a, class b, at most 30 s, as join of tls\n",
		"  join: warrant: vouches for leave with sha256 " + leave + "\n",
		"  join: warrant: takes KPSSH_TOKEN, required, secret: re [a-z]{6}[.]x\n",
		"  join: warrant: takes KPSSH_VAR_dns, optional: type ip\n",
		"  join: warrant: takes " + strings.Replace(long, " optional enum", ", optional: enum", 1) + "\n", // whole
		"  leave: warrant: serial 7, without an end, for any, at most 180 s, as leave of tls\n  leave: warrant: takes no parameters but those that are always sent\n",
	} {
		if text.code != exitDone || !strings.Contains(text.out, line) {
			t.Errorf("want %q, got exit %d,\n%s%s", line, text.code, text.out, text.err)
		}
	}
	if strings.Contains(text.out, "vouches for uninstall") {
		t.Errorf("a digest that no warrant has:\n%s", text.out)
	}
	var found []finding
	if err := json.Unmarshal([]byte(w.hostwarrant("inspect", filepath.Dir(path), "-o", "json").out), &found); err != nil || len(found) != 1 || len(found[0].Parts) != 2 {
		t.Fatalf("%v: %+v", err, found)
	}
	_, values, _ := strings.Cut(long, " enum ")
	want := []paramFact{{"KPSSH_TOKEN", true, true, "re", "[a-z]{6}[.]x"}, {"KPSSH_VAR_dns", false, false, "type", "ip"}, {"KPSSH_VAR_zone", false, false, "enum", values}}
	join, last := found[0].Parts[0].Warrant, found[0].Parts[1].Warrant
	if !slices.Equal(join.Params, want) || join.Leave != leave || join.Uninstall != "" || join.NotAfter != "2027-02-16T11:06:40Z" || join.Timeout != 30 {
		t.Errorf("got %+v", join)
	}
	if last.Params == nil || len(last.Params) > 0 || last.NotAfter != "" || last.Phase != "leave" {
		t.Errorf("got %+v", last)
	}
}

// What an object holds that somebody signed, or that decides about a run, is shown whichever kind it is of.
func TestInspectShowsStatementsRunsAndNodeClassesOfACluster(t *testing.T) {
	w := newWorld(t)
	w.write("d/statement.yaml", w.hostwarrant("statement", "object", floorStatement(t, w)).out)
	w.write("d/run.yaml", "apiVersion: hostwarrant.dev/v1alpha1\nkind: HostRun\nmetadata: {name: r, namespace: pool}\n"+
		"spec: {hostRef: {name: h}, profileRef: {name: tls}, phase: join, nodeName: pool-1, vars: {b: x, a: hidden}, secretRef: {name: s}}\n")
	w.write("d/class.yaml", "apiVersion: karpenter.dklesev.github.io/v1beta1\nkind: SSHNodeClass\nmetadata: {name: class-a}\n"+
		"spec: {joinProfileRef: {name: tls}, cluster: {endpoint: 'https://10.0.0.5:6443', caBundle: eA==}}\n")
	w.write("d/probe.yaml", "apiVersion: hostwarrant.dev/v1alpha1\nkind: HostRun\nmetadata: {name: p, namespace: pool}\nspec: {hostRef: {name: h}, phase: probe}\n")
	r := w.hostwarrant("inspect", w.path("d"))
	for _, says := range []string{
		"  kind: floor\n  serial: 4\n", "  for: cluster prod-1\n", w.root.Fingerprint + ", namespace hostwarrant-statement, sha512, covers: yes\n",
		"  runs: join of tls on h\n  node name: pool-1\n  vars: a, b\n  secret: s\n", "  runs: probe on h\n",
		"  cluster endpoint: https://10.0.0.5:6443\n  cluster CA: " + trustpolicy.Digest([]byte("x")) + "\n",
	} {
		if r.code != exitDone || !strings.Contains(r.out, says) {
			t.Errorf("want %q, got exit %d,\n%s%s", says, r.code, r.out, r.err)
		}
	}
	if strings.Count(r.out, "node name: ") != 1 || strings.Contains(r.out, "hidden") {
		t.Errorf("got\n%s", r.out)
	}
}
