package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// found gives the findings of a rule as "LINE severity", or all as "LINE severity RULE".
func found(findings []lint.Finding, rule string) []string {
	var all []string
	for _, f := range findings {
		switch rule {
		case f.Rule:
			all = append(all, fmt.Sprintf("%d %s", f.Line, f.Severity))
		case "":
			all = append(all, fmt.Sprintf("%d %s %s", f.Line, f.Severity, f.Rule))
		}
	}
	return all
}

// example is a script and the lines that a rule points at in it; none for a near miss.
type example struct {
	phase script.Phase
	text  string
	want  []string
}

const strict = "set -euo pipefail\n"

// lines joins lines to a script.
func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// check holds a rule against its examples, named as sentences.
func check(t *testing.T, rule string, examples map[string]example) {
	t.Helper()
	hits, misses := 0, 0
	for name, e := range examples {
		t.Run(name, func(t *testing.T) {
			if e.phase == "" {
				e.phase = script.Join
			}
			if diff := cmp.Diff(e.want, found(lint.Lint([]byte(e.text), e.phase), rule)); diff != "" {
				t.Errorf("%s in\n%s%s", rule, e.text, diff)
			}
		})
		if e.want == nil {
			misses++
		} else {
			hits++
		}
	}
	if hits == 0 || misses == 0 {
		t.Errorf("%s has %d hits and %d near misses, and needs both", rule, hits, misses)
	}
}

func TestEachRuleIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "spec", "lint.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented, listed []string
	for line := range strings.SplitSeq(string(page), "\n") {
		if id, ok := strings.CutPrefix(line, "### "); ok {
			documented = append(documented, id)
		}
	}
	for _, r := range lint.Rules() {
		listed = append(listed, r.ID)
		if r.Summary == "" || strings.HasSuffix(r.Summary, ".") {
			t.Errorf("%s needs a summary without a full stop", r.ID)
		}
	}
	if diff := cmp.Diff(listed, documented); diff != "" {
		t.Errorf("rules and docs/spec/lint.md differ:\n%s", diff)
	}
}

func TestPositionsCountCharacters(t *testing.T) {
	text := strict + "echo größe $KPSSH_NODE_NAME # ü\n"
	var f lint.Finding
	for _, f = range lint.Lint([]byte(text), script.Join) {
		if f.Rule == "unquoted-parameter" {
			break
		}
	}
	got := [4]int{f.Line, f.Col, f.EndLine, f.EndCol}
	if want := [4]int{2, 12, 2, 28}; got != want {
		t.Errorf("place %v, want %v", got, want)
	}
	if f.Hint != `write "$KPSSH_NODE_NAME"` {
		t.Errorf("hint %q", f.Hint)
	}
}

func TestFarColumnsAreCounted(t *testing.T) {
	// The parser itself counts columns up to 16383 only.
	text := strict + ": " + strings.Repeat("x", 20000) + "; echo $KPSSH_TAINTS\n"
	for _, f := range lint.Lint([]byte(text), script.Join) {
		if f.Rule == "unquoted-parameter" && f.Col != 20000+10 {
			t.Errorf("column %d", f.Col)
		}
	}
}

func TestFindingsComeInTheOrderOfTheScript(t *testing.T) {
	text := lines("echo $KPSSH_TAINTS", "eval x", "curl x | sh", "echo y > /tmp/z", "sleep 1 &")
	findings := lint.Lint([]byte(text), script.Leave)
	if len(findings) < 5 || !slices.IsSortedFunc(findings, func(a, b lint.Finding) int { return a.Line - b.Line }) {
		t.Errorf("not sorted: %v", found(findings, ""))
	}
	for range 20 {
		if diff := cmp.Diff(findings, lint.Lint([]byte(text), script.Leave)); diff != "" {
			t.Fatalf("not stable:\n%s", diff)
		}
	}
}

func TestACleanScriptHasNoFindings(t *testing.T) {
	text := lines(
		"#!/usr/bin/env bash",
		"set -euo pipefail",
		"umask 077",
		`printf '%s' "$KPSSH_BOOTSTRAP_TOKEN" > /etc/kubernetes/token`,
		"systemctl enable --now kubelet",
	)
	if got := lint.Check([]byte(text), script.Join); len(got.Findings)+len(got.Ignored) > 0 {
		t.Errorf("findings: %v", got)
	}
}

func TestWarnings(t *testing.T) {
	findings := []lint.Finding{
		{Rule: "a", Severity: lint.Warning, Line: 1, Message: "one"},
		{Rule: "b", Severity: lint.Note, Line: 2, Message: "two"},
		{Rule: "c", Severity: lint.Error, Line: 3, Message: "three \x1b[2J\u202e" + strings.Repeat("ä", 300)},
		{Rule: "d", Severity: lint.Warning, Line: 4, Message: "four"},
	}
	all := lint.Warnings(findings, 10)
	if len(all) != 3 || all[1] != "line 1: a: one" || all[2] != "line 4: d: four" {
		t.Errorf("warnings %q", all)
	}
	if !strings.HasPrefix(all[0], `line 3: c: three \x1b[2J\u202e`) || len(all[0]) > lint.MaxWarning || !strings.HasSuffix(all[0], "...") {
		t.Errorf("the gravest is %q", all[0])
	}
	if diff := cmp.Diff([]string{all[0], "2 more findings: hostwarrant lint FILE"}, lint.Warnings(findings, 2)); diff != "" {
		t.Error(diff)
	}
	for _, limit := range []int{0, -1} {
		if got := lint.Warnings(findings, limit); got != nil {
			t.Errorf("limit %d gives %q", limit, got)
		}
	}
	if got := lint.Warnings(findings[1:2], 5); got != nil {
		t.Errorf("a note became a warning: %q", got)
	}
}

func TestSeverities(t *testing.T) {
	var words []string
	for _, s := range lint.Severities() {
		words = append(words, s.String())
	}
	if diff := cmp.Diff([]string{"note", "warning", "error"}, words); diff != "" {
		t.Error(diff)
	}
}
