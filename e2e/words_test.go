//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestOfflineVerdictIsTheClustersToTheWord puts each bad object to "hostwarrant verify" and to
// kubectl apply: exit 1 and the very sentence that the API server shows.
func TestOfflineVerdictIsTheClustersToTheWord(t *testing.T) {
	i := install(t)
	dir := t.TempDir()
	policy := testkit.WriteFile(t, dir, "policy.json", i.trustPolicy(t, i.document, i.root))
	roots := testkit.WriteFile(t, dir, "roots", []byte(i.root.Line+"\n"))
	verify := func(object []byte) (code int, message string) {
		cmd := exec.Command(filepath.Join(shared.Lab(t).Root(), "bin", "hostwarrant"), "verify", "-", "-o", "json",
			"--policy", policy, "--root", roots, "--cluster", "e2e")
		cmd.Stdin = bytes.NewReader(object)
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code, err = exit.ExitCode(), nil
		}
		must(t, err)
		var answers []struct{ Message string }
		must(t, json.Unmarshal(out, &answers))
		if len(answers) != 1 {
			t.Fatalf("verify gave %d answers: %s", len(answers), out)
		}
		return code, answers[0].Message
	}
	for name, object := range wordsCases(t, i) {
		t.Run(name, func(t *testing.T) {
			code, offline := verify(object)
			applied := i.kubectl(t, object, "apply", "--dry-run=server", "-f", "-")
			if strings.Contains(applied.Stderr, "ValidatingAdmissionPolicy 'hostwarrant-profile-shape'") {
				// The API server's own guard of the shape stands before the webhook, and has words of its own.
				if code != 1 || applied.Code != 1 {
					t.Errorf("verify: exit %d, %s\nkubectl: exit %d, %s", code, offline, applied.Code, applied.Stderr)
				}
				return
			}
			_, cluster, denied := strings.Cut(strings.TrimSpace(applied.Stderr), "denied the request: ")
			if !denied {
				if code != 0 || applied.Code != 0 || !strings.HasPrefix(name, "good") {
					t.Fatalf("verify: exit %d, %s\nkubectl: exit %d, %s", code, offline, applied.Code, applied.Stderr)
				}
				return
			}
			if code != 1 || offline != cluster {
				t.Errorf("verify: exit %d\n%s\nkubectl:\n%s", code, offline, cluster)
			}
		})
	}
}

// wordsCases are one good profile and the bad ones that pass the CRD's schema.
func wordsCases(t *testing.T, i *installation) map[string][]byte {
	t.Helper()
	const name = "p-words"
	signed := signatures(t, i.signer, scripts())
	with := func(phase, signature string) map[string]string {
		changed := maps.Clone(signed)
		changed[phase] = signature
		return changed
	}
	nul := join(func(s string) string { return s + "\x00\n" })
	return map[string][]byte{
		"good, with a warrant":       warranted(t, i, name, nil),
		"another profile's warrant":  warranted(t, i, name, func(w *warrant.Warrant) { w.Profile = "other" }),
		"another version's warrant":  warranted(t, i, name, func(w *warrant.Warrant) { w.Serial = 2 }),
		"another cluster's warrant":  warranted(t, i, name, func(w *warrant.Warrant) { w.Targets = []warrant.Target{{Kind: "cluster", Value: "prod-1"}} }),
		"a warrant that has ended":   warranted(t, i, name, func(w *warrant.Warrant) { w.NotAfter = 1000000000 }),
		"a warrant that never ends":  warranted(t, i, name, func(w *warrant.Warrant) { w.NotAfter *= 2 }),
		"a warrant not yet in force": warranted(t, i, name, func(w *warrant.Warrant) { w.HasNotBefore, w.NotBefore = true, w.NotAfter-1 }),

		"good":               profile(t, name, scripts(), signed),
		"unsigned":           profile(t, name, scripts(), nil),
		"empty signatures":   profile(t, name, scripts(), map[string]string{}),
		"an empty signature": profile(t, name, scripts(), with("leave", "")),
		"wrong key":          profile(t, name, scripts(), signatures(t, testkit.NewSigner(t, "ecdsa256"), scripts())),
		"wrong namespace":    profile(t, name, scripts(), with("join", testkit.Sign(t, i.signer, "git", []byte(scripts()["join"])))),
		"one byte":           profile(t, name, join(func(s string) string { return s + " " }), signed),
		"a lost newline":     profile(t, name, join(func(s string) string { return strings.TrimSuffix(s, "\n") }), signed),
		"CRLF":               profile(t, name, join(func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), signed),
		"a template":         profile(t, name, join(func(s string) string { return s + "{{\n" }), signed),
		"NUL":                profile(t, name, nul, signatures(t, i.signer, nul)),
		"leading text":       profile(t, name, scripts(), with("join", "x\n"+signed["join"])),
		"trailing text":      profile(t, name, scripts(), with("join", signed["join"]+"x")),
		"truncated":          profile(t, name, scripts(), with("join", signed["join"][:90])),
		"RSA 2048":           profile(t, name, scripts(), with("join", testkit.KeygenSign(t, testkit.NewSigner(t, "rsa2048"), "kpssh", []byte(scripts()["join"])))),
		"swapped":            profile(t, name, scripts(), with("join", signed["leave"])),
		"a Raw host":         host(t, "h-words", object{"execMode": "Raw"}),
		"user root":          host(t, "h-words", object{"user": "root", "trustedSigners": []string{i.signer.Line}}),
		"a foreign signer":   host(t, "h-words", object{"trustedSigners": []string{testkit.NewSigner(t, "ed25519").Line}}),
		"a malformed key":    host(t, "h-words", object{"trustedSigners": []string{"ssh-ed25519 AAAA"}}),
		"a foreign shim":     host(t, "h-words", object{"shimCommand": "bash -s"}),
	}
}

// warranted is a profile whose scripts have warrants, all changed alike.
func warranted(t *testing.T, i *installation, name string, change func(*warrant.Warrant)) []byte {
	t.Helper()
	texts := map[string]string{}
	for phase, text := range scripts() {
		w := &warrant.Warrant{
			Profile: name, Phase: script.Phase(phase), Serial: 1, Targets: []warrant.Target{{Kind: warrant.TargetAny}},
			NotAfter: time.Now().Truncate(time.Hour).Add(24 * time.Hour * 89).Unix(),
		}
		if change != nil {
			change(w)
		}
		out, err := warrant.Set([]byte(text), w)
		must(t, err)
		texts[phase] = string(out)
	}
	return profile(t, name, texts, signatures(t, i.signer, texts))
}
