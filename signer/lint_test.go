package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/signer/manifest"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// lintJSON lints files and gives "FILE:LINE phase severity rule" of each finding.
func lintJSON(t *testing.T, w *world, paths ...string) []string {
	t.Helper()
	r := w.hostwarrant(append([]string{"lint", "-o", "json"}, paths...)...)
	var rows []lintRow
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil {
		t.Fatalf("%v in %q (%s)", err, r.out, r.err)
	}
	var all []string
	for _, row := range rows {
		all = append(all, fmt.Sprintf("%s:%d %s %s %s", filepath.Base(row.Path), row.Line, row.Phase, row.Severity, row.Rule))
	}
	return all
}

// The examples that karpenter-provider-ssh publishes. Each finding was compared with the script by hand and is
// right; what lint does not say about them was looked for and not found.
func TestLintOfUpstreamExamples(t *testing.T) {
	dir := testkit.CorpusDir(t, "upstream/examples")
	got := lintJSON(t, &world{t: t}, dir)
	want := []string{
		"profile-nodeadm-ssm.yaml:41 install warning unchecked-download", // nodeadm is the latest, run as root
		"profile-nodeadm-ssm.yaml:41 install warning fixed-tmp-name",     // and lies in /tmp/nodeadm before that
		"profile-nodeadm-ssm.yaml:61 join note trace-secrets",            // turned on by intent, on a branch that exits
		"profile-nodeadm-ssm.yaml:73 join warning world-readable-secret", // chmod 600 comes after the secret
		"profile-nodeadm-ssm.yaml:94 join note trace-secrets",            // turned on by intent, below the secrets
		"profile-sbc.yaml:96 join error trace-secrets",                   // : "${KPSSH_BOOTSTRAP_TOKEN:?}" is printed
		"profile-sbc.yaml:97 join note cluster-not-pinned",
		"profile-sbc.yaml:108 join warning world-readable-secret", // chmod 600 comes after the token
		"profile-tls-bootstrap.yaml:57 join error trace-secrets",
		"profile-tls-bootstrap.yaml:58 join note cluster-not-pinned",
		"profile-tls-bootstrap.yaml:69 join warning world-readable-secret",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const lintProfile = `apiVersion: karpenter.dklesev.github.io/v1beta1
kind: SSHJoinProfile
metadata: {name: p}
spec:
  scripts:
    leave: %s`

func TestPlacesOfScriptsInYAML(t *testing.T) {
	block := func(header string, lines ...string) string {
		return fmt.Sprintf(lintProfile, header+"\n"+strings.Join(lines, "\n")+"\n")
	}
	tests := map[string]struct{ text, want string }{
		"a literal block":          {block("|", "      set -euo pipefail", "      eval x"), "8:7"},
		"less indented":            {block("|", "     set -euo pipefail", "     ls; eval x"), "8:10"},
		"indented by its header":   {block("|8", "            set -euo pipefail", "            eval x"), "8:13"},
		"blank lines first":        {block("|", "", "", "      set -euo pipefail", "", "      eval x"), "11:7"},
		"a comment at the header":  {block("|+ # hello", "      set -euo pipefail", "      eval x", "", ""), "8:7"},
		"CR LF":                    {strings.ReplaceAll(block("|", "      set -euo pipefail", "      eval x"), "\n", "\r\n"), "8:7"},
		"characters, not bytes":    {block("|", "      set -euo pipefail", "      : ä; eval x"), "8:12"},
		"no newline at the end":    {strings.TrimSuffix(block("|", "      set -euo pipefail", "      eval x"), "\n"), "8:7"},
		"a folded block":           {block(">", "      set -euo pipefail", "", "      eval x"), "6:12"},
		"in quotes":                {fmt.Sprintf(lintProfile, `"set -euo pipefail\neval x\n"`+"\n"), "6:12"},
		"plain":                    {fmt.Sprintf(lintProfile, "set -euo pipefail; eval x\n"), "6:12"},
		"a line separator of YAML": {block("|", "      set -euo pipefail # \u2028", "      eval x"), "8:7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, dir: t.TempDir()}
			r := w.hostwarrant("lint", w.write("p.yaml", tt.text))
			if !strings.Contains(r.out, "p.yaml:"+tt.want+": warning: SSHJoinProfile/p, leave, line ") || !strings.Contains(r.out, "[eval]") {
				t.Errorf("want %s in %s%s\n%s", tt.want, r.out, r.err, tt.text)
			}
		})
	}
}

// A fault that is only seen at the end of a script must not point at the next field.
func TestPlacesBehindTheEndOfAScript(t *testing.T) {
	w := &world{t: t, dir: t.TempDir()}
	r := w.hostwarrant("lint", w.write("p.yaml", fmt.Sprintf(lintProfile, "|\n      set -euo pipefail\n      cat <<EOF\n    join: |\n      true\n")))
	if !strings.Contains(r.out, "p.yaml:8:11: error: SSHJoinProfile/p, leave, line 2: ") {
		t.Errorf("got %s%s", r.out, r.err)
	}
	field := newScriptField([]byte("a: |\n  x\n  y\nb: 1\n"), &manifest.Node{Line: 1, Col: 4, Style: manifest.LiteralB, Text: "x\ny\n"})
	if line, col := field.at(3, 1); line != 3 || col != 3 {
		t.Errorf("behind the end is %d:%d", line, col)
	}
}

func TestLintSARIFIsReadable(t *testing.T) {
	w := &world{t: t, dir: t.TempDir()}
	path := w.write("leave.sh", "eval x\nsleep 9 & # hostwarrant:ignore held-stdout it is short\n")
	r := w.hostwarrant("lint", "-o", "sarif", path)
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID       string
				RuleIndex    int
				Suppressions []struct{ Justification string }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.out), &log); err != nil || r.code != exitRefused {
		t.Fatalf("exit %d: %v", r.code, err)
	}
	run := log.Runs[0]
	var got []string
	for _, result := range run.Results {
		if run.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("rule %d is not %s", result.RuleIndex, result.RuleID)
		}
		got = append(got, fmt.Sprint(result.RuleID, len(result.Suppressions)))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"eval0", "held-stdout1", "missing-strict-mode0"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLintNamesFilesThatItCannotRead(t *testing.T) {
	w := &world{t: t, dir: t.TempDir()}
	path := w.write("leave.sh", "true\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(path); err == nil {
		t.Skip("root reads every file")
	}
	r := w.hostwarrant("lint", path)
	if r.code != exitUndecided || !strings.Contains(r.err, "leave.sh") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// Code scanning keeps the findings of a tool together by its name.
func TestSARIFHasOneToolName(t *testing.T) {
	w := newWorld(t)
	path := w.write("p.json", w.profile(goodScripts(), w.signedBy(w.alice, goodScripts())))
	for _, args := range [][]string{{"lint", path, "-o", "sarif"}, {"verify", path, "--policy", w.policy, "--root", w.pubs, "-o", "sarif"}} {
		if r := w.hostwarrant(args...); !strings.Contains(r.out, `"name": "hostwarrant"`) {
			t.Errorf("%s: got %s%s", args[0], r.out, r.err)
		}
	}
}
