package main

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestDiffAndShowHideNothingBehindALongWord(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", 300)
	document := testkit.PolicyDocument(w.alice) + "ruleClasses: {base: {allowedRuleIDs: [R1]}}\n"
	next := strings.Replace(document, "[R1]", `["*"]`, 1)
	next = strings.Replace(next, "users: [kpssh]", `users: [kpssh, "`+long+`\e[2Jend"]`, 1)
	was, is := w.writePolicy("was.json", document), w.writePolicy("is.json", next)
	r := w.hostwarrant("policy", "diff", was, is)
	for _, want := range []string{long + `\x1b[2Jend`, "WIDENS   ruleClasses.base.allowedRuleIDs: adds *\n"} {
		if r.code != exitRefused || !strings.Contains(r.out, want) || strings.Contains(r.out, "\x1b") {
			t.Errorf("exit %d, want %q in %q", r.code, want, r.out)
		}
	}
	if shown := w.hostwarrant("policy", "show", is); !strings.Contains(shown.out, `\x1b[2Jend`) {
		t.Errorf("show says %q", shown.out)
	}
}
