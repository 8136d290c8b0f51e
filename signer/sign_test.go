package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const plainProfile = `# kept
apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHJoinProfile
metadata:
  name: tls-bootstrap # kept
spec:
  version: '7'
  scripts:
    install: |
      #!/bin/sh
      echo install
    join: "#!/bin/sh\necho join\n"
    leave: |-
      #!/bin/sh
      echo leave
`

func (w *world) key(name string, s testkit.Signer) string {
	w.t.Helper()
	return w.write(name, string(s.PEM))
}

func TestSignEditsInPlaceAndVerifies(t *testing.T) {
	for name, text := range map[string]string{
		"LF":                        plainProfile,
		"CRLF":                      strings.ReplaceAll(plainProfile, "\n", "\r\n"),
		"JSON":                      `{"apiVersion":"karpenter.dklesev.github.io/v1beta1","kind":"SSHJoinProfile","metadata":{"name":"p"},"spec":{"scripts":{"install":"a","join":"b\u00e4\n","leave":"c"}}}`,
		"a list":                    "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimPrefix(plainProfile, "# kept\n"), "\n", "\n  ") + "\n",
		"a stream with other kinds": "kind: ConfigMap\n---\n" + plainProfile + "---\n" + plainProfile,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path, key := w.write("p.yaml", text), w.key("alice", w.alice)
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
			r := w.hostwarrant("sign", "-i", path, "--key", key)
			if r.code != exitDone || r.out != "" {
				t.Fatalf("exit %d, stdout %q, stderr %q", r.code, r.out, r.err)
			}
			wantVerified(t, w.hostwarrant("verify", path, "--policy", w.policy, "--root", w.pubs))
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the mode changed: %v %v", info.Mode(), err)
			}
			once := w.read(path)
			if r := w.hostwarrant("sign", path, "--key", key); r.out != once {
				t.Errorf("signing again with the same Ed25519 key changes the file:\n%s", cmp.Diff(once, r.out))
			}
			if left := withoutSignatures(once); name != "JSON" && left != text {
				t.Errorf("bytes outside the signatures changed:\n%s", cmp.Diff(text, left))
			}
		})
	}
}

// withoutSignatures cuts out the lines that signing added.
func withoutSignatures(text string) string {
	var kept []string
	inside := false
	indent := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if strings.TrimSpace(line) == "signatures:" {
			inside, indent = true, depth
			continue
		}
		if inside && depth > indent {
			continue
		}
		inside = false
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}

func TestSignRefusesWhatNoVerifierTakes(t *testing.T) {
	w := newWorld(t)
	key := w.key("alice", w.alice)
	replace := func(old, new string) string { return strings.Replace(plainProfile, old, new, 1) }
	for name, tt := range map[string]struct{ text, word string }{
		"a template":           {replace("echo install", "echo {{ .x }}"), "install: TemplateFound"},
		"a NUL":                {replace(`echo join`, `echo \0`), "join: Malformed"},
		"a warrant":            {replace("echo leave", "#warrant: v1"), "leave: WarrantMalformed"},
		"a missing script":     {replace("    leave: |-\n      #!/bin/sh\n      echo leave\n", ""), "spec.scripts.leave: Malformed"},
		"a key twice":          {plainProfile + "spec: {}\n", "Malformed"},
		"an alias":             {replace("'7'", "&v '7'"), "Malformed"},
		"text that is no YAML": {"{", "Malformed"},
		"a signature as a map": {replace("  scripts:", "  signatures: {join: {a: b}}\n  scripts:"), "Malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := w.write("p.yaml", tt.text)
			wantFailed(t, w.hostwarrant("sign", "-i", path, "--key", key), exitRefused, tt.word)
			wantFailed(t, w.hostwarrant("sign", path, "-o", w.path("out"), "--key", key), exitRefused, tt.word)
			if got := w.read(path); got != tt.text {
				t.Errorf("the file changed:\n%s", cmp.Diff(tt.text, got))
			}
			if _, err := os.Stat(w.path("out")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an output was left: %v", err)
			}
		})
	}
	path := w.write("p.yaml", plainProfile)
	wantFailed(t, w.hostwarrant("sign", path, "--key", w.key("weak", testkit.NewSigner(t, "rsa2048"))), exitUndecided, "KeyTypeRefused")
	wantFailed(t, w.hostwarrant("sign", w.write("x.yaml", "kind: ConfigMap\n"), "--key", key), exitUndecided, "no SSHJoinProfile")
	wantFailed(t, w.hostwarrant("sign", t.TempDir(), "--key", key), exitUndecided, "no phase scripts")
}

func TestSignKeys(t *testing.T) {
	w := newWorld(t)
	path := w.write("p.yaml", plainProfile)
	open := w.key("open", w.alice)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, w.hostwarrant("sign", path, "--key", open), exitUndecided, "can be read by others")
	wantFailed(t, w.hostwarrant("sign", path, "--key", w.path("none")), exitUndecided, "none")
	wantFailed(t, w.hostwarrant("sign", path, "--key", path), exitUndecided, "neither a private key")
	wantFailed(t, w.hostwarrant("sign", path, "--key", w.write("a.pub", w.alice.Line+"\n")), exitUndecided, "SSH_AUTH_SOCK")
}

func TestSignUsage(t *testing.T) {
	w := newWorld(t)
	path, key := w.write("p.yaml", plainProfile), w.key("alice", w.alice)
	for name, args := range map[string][]string{
		"no path":             {"sign", "--key", key},
		"no key":              {"sign", path},
		"-i with -o":          {"sign", path, "--key", key, "-i", "-o", w.path("out")},
		"--force without -o":  {"sign", path, "--key", key, "--force"},
		"-o with two paths":   {"sign", path, path, "--key", key, "-o", w.path("out")},
		"-i with stdin":       {"sign", "-", "--key", key, "-i"},
		"-i with a directory": {"sign", w.dir, "--key", key, "-i"},
		"a version with a !":  {"sign", w.dir, "--key", key, "--version", "1!"},
		"--add with a serial": {"sign", path, "--key", key, "--add", "--serial", "1"},
		"--add with CR LF":    {"sign", path, "--key", key, "--add", "--fix-crlf"},
		"--add and --replace": {"sign", path, "--key", key, "--add", "--replace"},
		"--policy alone":      {"sign", path, "--key", key, "--policy", w.policy},
		"--cluster alone":     {"sign", path, "--key", key, "--cluster", "x"},
		"--profile of a file": {"sign", path, "--key", key, "--profile", "x"},
		"--version of a file": {"sign", path, "--key", key, "--version", "3"},
		"-o as a format":      {"sign", path, "--key", key, "-o", "json"},
		"no serial":           {"sign", path, "--key", key, "--target", "any"},
		"no target":           {"sign", path, "--key", key, "--serial", "1"},
		"a bad target":        {"sign", path, "--key", key, "--serial", "1", "--target", "class"},
		"a bad parameter":     {"sign", path, "--key", key, "--serial", "1", "--target", "any", "--param", "X required type ip"},
		"a bad validity":      {"sign", path, "--key", key, "--serial", "1", "--target", "any", "--valid-for", "90"},
		"half a second":       {"sign", path, "--key", key, "--serial", "1", "--target", "any", "--not-before", "2026-11-30T00:00:00.5Z"},
		"a bad beginning":     {"sign", path, "--key", key, "--serial", "1", "--target", "any", "--not-before", "today"},
		"an unknown flag":     {"sign", path, "--key", key, "--nothing"},
	} {
		t.Run(name, func(t *testing.T) { wantFailed(t, w.hostwarrant(args...), exitUsage, "hostwarrant: hint: ") })
	}
}

func TestSignOutputNeverReplacesAFileUnasked(t *testing.T) {
	w := newWorld(t)
	path, key, out := w.write("p.yaml", plainProfile), w.key("alice", w.alice), w.write("out.yaml", "mine\n")
	wantFailed(t, w.hostwarrant("sign", path, "--key", key, "-o", out), exitUsage, "exists already")
	if w.read(out) != "mine\n" {
		t.Error("the file was replaced")
	}
	if r := w.hostwarrant("sign", path, "--key", key, "-o", out, "--force"); r.code != exitDone || r.out != "" {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	wantVerified(t, w.hostwarrant("verify", out, "--policy", w.policy, "--root", w.pubs))
	if r := w.hostwarrant("sign", path, "--key", key, "-o", w.path("new.yaml")); r.code != exitDone {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	wantVerified(t, w.hostwarrant("verify", w.path("new.yaml"), "--policy", w.policy, "--root", w.pubs))
}

func TestSignReplacesOrAdds(t *testing.T) {
	w := newWorld(t)
	path := w.write("p.yaml", plainProfile)
	alice, bob := w.key("alice", w.alice), w.key("bob", w.bob)
	keys := func() string {
		t.Helper()
		r := w.hostwarrant("inspect", path)
		var all []string
		for _, line := range strings.Split(r.out, "\n") {
			switch {
			case strings.Contains(line, w.alice.Fingerprint) && strings.HasSuffix(line, "covers: yes"):
				all = append(all, "a")
			case strings.Contains(line, w.bob.Fingerprint) && strings.HasSuffix(line, "covers: yes"):
				all = append(all, "b")
			case strings.Contains(line, "signature: "):
				all = append(all, "?")
			}
		}
		return strings.Join(all, "")
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--add", "--key", alice}, "aaa"},
		{[]string{"--add", "--key", bob}, "ababab"},
		{[]string{"--add", "--key", alice}, "ababab"},
		{[]string{"--key", bob}, "ababab"},
		{[]string{"--key", bob, "--replace"}, "bbb"},
		{[]string{"--add", "--key", alice}, "bababa"},
		{[]string{"--key", alice, "--replace"}, "aaa"},
		{[]string{"--key", alice, "--key", bob}, "ababab"},
	} {
		if r := w.hostwarrant(append([]string{"sign", "-i", path}, step.args...)...); r.code != exitDone {
			t.Fatalf("%v: exit %d, %s", step.args, r.code, r.err)
		}
		if got := keys(); got != step.want {
			t.Errorf("%v: want signatures %s, got %s", step.args, step.want, got)
		}
	}
	changed := w.write("p.yaml", strings.Replace(w.read(path), "echo install", "echo other", 1))
	wantFailed(t, w.hostwarrant("sign", "-i", changed, "--add", "--key", bob), exitRefused, "install: SignatureInvalid")
	if r := w.hostwarrant("sign", "-i", changed, "--key", bob); r.code != exitDone || keys() != "babab" || !strings.Contains(r.err, w.alice.Fingerprint+" no longer covers the script, dropped") {
		t.Errorf("want alice's stale signature dropped, got %s: %s", keys(), r.err)
	}
	broken := w.write("p.yaml", strings.Replace(w.read(path), "BEGIN SSH", "BEGIN  SSH", 1))
	wantFailed(t, w.hostwarrant("sign", "-i", broken, "--add", "--key", bob), exitRefused, "SignatureMalformed")
}

func TestSignDirectoryWritesSignaturesAndPrintsAProfile(t *testing.T) {
	w := newWorld(t)
	scripts := goodScripts()
	scripts[script.Uninstall] = "#!/bin/sh\n\techo \"uninstall\" \n\n\n"
	scripts[script.Leave] = "  leave without newline"
	for phase, text := range scripts {
		w.write("tls-a/"+scriptFile(phase), text)
	}
	key := w.key("alice", w.alice)
	r := w.hostwarrant("sign", w.path("tls-a"), "--key", key, "--version", "42")
	if r.code != exitDone || !strings.Contains(r.out, `version: "42"`) || !strings.Contains(r.out, "name: tls-a\n") {
		t.Fatalf("exit %d, %s, %s", r.code, r.out, r.err)
	}
	wantVerified(t, w.verify(r.out))
	wantVerified(t, w.hostwarrant("verify", w.path("tls-a"), "--policy", w.policy, "--root", w.pubs))
	for phase, text := range scripts {
		sig := w.read(w.path("tls-a/" + scriptFile(phase) + ".sig"))
		if !testkit.KeygenAccepts(t, w.alice.Line, "kpssh", []byte(text), []byte(sig)) {
			t.Errorf("ssh-keygen refuses the signature of %s", phase)
		}
	}
	again := w.hostwarrant("sign", w.path("tls-a"), "--key", key, "--profile", "tls-b", "-o", w.path("b.yaml"))
	if again.code != exitDone || again.out != "" || !strings.Contains(w.read(w.path("b.yaml")), "name: tls-b\n") {
		t.Errorf("exit %d, %s, %s", again.code, again.out, again.err)
	}
	wantFailed(t, w.hostwarrant("sign", w.path("tls-a"), "--key", key, "--profile", "Bad_name"), exitUsage, "name of a profile")
	w.write("tls-c/join.sh", "echo {{ x }}\n")
	wantFailed(t, w.hostwarrant("sign", w.path("tls-c"), "--key", key), exitRefused, "TemplateFound")
	w.write("tls-c/join.sh", "echo only\n")
	wantFailed(t, w.hostwarrant("sign", w.path("tls-c"), "--key", key), exitRefused, "spec.scripts.install: Malformed")
	if _, err := os.Stat(w.path("tls-c/join.sh.sig")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a signature was left: %v", err)
	}
}

func TestSignWarnsOfASecurityKeyInFront(t *testing.T) {
	w := newWorld(t)
	sk := testkit.NewSigner(t, "sk-ed25519")
	sign := func(others othersMode, key testkit.Signer, text string) (out, advice string) {
		t.Helper()
		s := &signing{c: &cli{err: &strings.Builder{}, now: testkit.Now}, keys: []ssh.Signer{key}, others: others}
		data, err := s.file("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(data), strings.Join(s.advice, "\n")
	}
	const says = "the first signature is by a security key"
	alone, advice := sign(keepValid, sk, plainProfile)
	if !strings.Contains(advice, says) {
		t.Errorf("want a warning, got %q", advice)
	}
	first, _ := sign(keepValid, w.alice, plainProfile)
	behind, one := sign(onlyAdd, sk, first)
	before, other := sign(onlyAdd, w.alice, alone)
	if strings.Contains(one+other, says) {
		t.Errorf("want no warning where another key stands first: %q %q", one, other)
	}
	wantVerified(t, w.verify(behind))
	wantVerified(t, w.verify(before))
}

// What is written must be what was signed, and all of it.
func TestCheckFindsAnOutputThatIsNotWhatWasSigned(t *testing.T) {
	w := newWorld(t)
	s := &signing{c: &cli{err: &strings.Builder{}}}
	p := parsed(t, w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	d := draftOf(p)
	if err := s.covered(p, d); err != nil {
		t.Fatal(err)
	}
	other := goodScripts()
	other[script.Join] = "echo other\n"
	wantReason(t, s.covered(parsed(t, w.profile(other, w.signedBy(w.alice, other))), d), "BytesChanged")
	wantReason(t, s.covered(parsed(t, w.profile(goodScripts(), w.signedBy(w.alice, other))), d), "SignatureInvalid")
	wantReason(t, s.covered(parsed(t, w.profile(goodScripts(), nil)), d), "SignatureMalformed")
}

func TestWithOwnKeepsOthersInTheirOrder(t *testing.T) {
	w := newWorld(t)
	a := testkit.Sign(t, w.alice, "kpssh", []byte("x"))
	b := testkit.Sign(t, w.bob, "kpssh", []byte("x"))
	got, err := withOwn([]string{a, b}, "new\n", w.alice.PublicKey())
	if err != nil || strings.Join(got, "") != "new\n"+b {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := withOwn([]string{a + "x"}, "new\n", w.alice.PublicKey()); err == nil {
		t.Error("want an error for text behind a block")
	}
	if sshsig.MaxBlocks != 8 {
		t.Error("docs/cli.md and the help of sign say 8")
	}
}
