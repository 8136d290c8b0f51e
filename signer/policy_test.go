package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestRenderAllowedSigners(t *testing.T) {
	w := newWorld(t)
	narrow, late, revoked := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	document := testkit.PolicyDocument(w.alice) + fmt.Sprintf(`  - {name: narrow, key: %q, profiles: ["tls-*", web], phases: [join, leave]}
  - {name: late, key: %q, validBefore: "2026-11-29T00:00:00Z"}
  - {name: revoked, key: %q}
revoked: {signers: [%q]}
`, narrow.Line, late.Line, revoked.Line, revoked.Fingerprint)
	policy := w.writePolicy("scoped.json", document)
	args := []string{"policy", "render", "allowed_signers", policy, "--root", w.pubs}
	r := w.hostwarrant(args...)
	want := "install@*,join@*,leave@*,uninstall@*,kpssh namespaces=\"kpssh\" " + w.alice.Line + "\n" +
		"join@tls-*,join@web,leave@tls-*,leave@web namespaces=\"kpssh\" " + narrow.Line + "\n"
	if diff := cmp.Diff(want, r.out); r.code != exitDone || diff != "" {
		t.Errorf("exit %d:\n%s", r.code, diff)
	}
	for _, word := range []string{`signer "late" is revoked or past`, `signer "revoked" is revoked or past`, `warning: signer "narrow" has a narrower scope`} {
		if !strings.Contains(r.err, word) {
			t.Errorf("want %q on stderr, got %q", word, r.err)
		}
	}
	wantFailed(t, w.at(testkit.Now().Add(365*24*time.Hour), "", args...), exitRefused, "PolicyExpired")
	unsigned := w.write("unsigned.json", w.policyObject(document))
	wantFailed(t, w.hostwarrant("policy", "render", "allowed_signers", unsigned, "--root", w.pubs), exitUndecided, "PolicyUnsigned")
}

func TestModeWarnIsSaid(t *testing.T) {
	w := newWorld(t)
	document := strings.Replace(testkit.PolicyDocument(w.alice), "mode: enforce", "mode: warn\nwarnUntil: \"2026-12-05T00:00:00Z\"", 1)
	w.policy = w.writePolicy("policy.json", document)
	r := w.verify(w.profile(goodScripts(), nil))
	wantRefused(t, r, "Unsigned")
	if !strings.Contains(r.err, "mode warn") {
		t.Errorf("want a note about mode warn, got %q", r.err)
	}
}

func TestPolicySignRefusesADocumentThatNoReaderTakes(t *testing.T) {
	w := newWorld(t)
	good := testkit.PolicyDocument(w.alice)
	key := w.key("root", w.root)
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, document := range map[string]string{
		"an unknown mode":   replace("mode: enforce", "mode: relaxed"),
		"an unknown field":  good + "surprise: true\n",
		"a field twice":     good + "version: 4\n",
		"threshold 0":       replace("thresholds: {}", "thresholds: {join: 0}"),
		"more keys than is": replace("thresholds: {}", "thresholds: {join: 2}"),
		"no cluster":        replace("{any: {}}", "{}"),
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, w.hostwarrant("policy", "sign", w.write("p.json", w.policyObject(document)), "--key", key), exitRefused, "PolicyMalformed")
		})
	}
	for name, tt := range map[string]struct{ document, warning string }{
		"a good one":           {good, ""},
		"for a named cluster":  {replace("{any: {}}", "{prod-1: {}}"), ""},
		"past its term":        {replace("2027-05-29", "2026-11-30"), "PolicyExpired"},
		"of a later root":      {replace("rootVersion: 1", "rootVersion: 2"), "rootVersion is 2"},
		"issued in the future": {replace("2026-11-29", "2027-01-01"), "NotYetValid"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.hostwarrant("policy", "sign", w.write("p.json", w.policyObject(tt.document)), "--key", key, "--root", w.pubs)
			if r.code != exitDone || !strings.Contains(r.out, "BEGIN SSH SIGNATURE") || !strings.Contains(r.err, tt.warning) || tt.warning == "" && r.err != "" {
				t.Errorf("exit %d, stderr %q", r.code, r.err)
			}
		})
	}
}

func TestMessagesShowNoForeignControlCharacters(t *testing.T) {
	w := newWorld(t)
	odd := "kind: \"Evil\\e[2J\"\nmetadata: {name: \"a\\u202eb\"}\n"
	for _, r := range []result{
		w.verify(odd),
		w.hostwarrant("inspect", w.write("odd.yaml", odd)),
		w.hostwarrant("sign", w.write("odd.yaml", odd), "--key", w.key("alice", w.alice)),
		w.verify(strings.Replace(w.profile(goodScripts(), nil), "tls-bootstrap", `a\u001b[2Jb`, 1)),
		w.hostwarrant("inspect", w.write("p.json", strings.Replace(w.profile(goodScripts(), nil), "tls-bootstrap", `a\u001b[2Jb`, 1))),
	} {
		if strings.ContainsAny(r.out+r.err, "\x1b\u202e") || r.out+r.err == "" {
			t.Errorf("got %q and %q", r.out, r.err)
		}
	}
}
