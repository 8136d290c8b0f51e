package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// fill repeats a text up to the largest script there may be.
func fill(unit string) string { return strings.Repeat(unit, script.MaxCharacters/len(unit)) }

// A script that is built to hurt must neither end the program nor hold it up.
func TestHostileScriptsAreBounded(t *testing.T) {
	nested := []string{
		"(", "$(", "${a:-", "((", "$((", "$((1+(", "[[ ( ", "! ", "a|", "a&&", "if a;then ", "while ", "{ ", "`", "\"$(", "a[", "<(", "f() ",
		"case a in a) ", "((a?a:", "[[ ! ", "time ", "coproc ", "$((-", "((a**", "((!", "a=(", "\\`", "<<a ", "<<a\n", "$((a[", "${a[", "${a/",
		"((a=", "function f ", "@(", "$\"", "sudo ", "a=$(",
	}
	texts := map[string]string{}
	for _, unit := range nested {
		texts[fmt.Sprintf("%q again and again", unit)] = fill(unit)
	}
	for name, unit := range map[string]string{
		"many findings": "echo $KPSSH_A;", "many pipes to shells": "curl x|sh;", "many evals": "eval $KPSSH_A\n", "many children": "a &\n",
		"many comments": "#hostwarrant:ignore eval x\n", "many traces": "set -x\necho $KPSSH_BOOTSTRAP_TOKEN\n",
		"many secret files": "echo $KPSSH_SECRET_A>f\nchmod 600 x\n", "many assignments": "KPSSH_A=$KPSSH_SECRET_A\n", "many words": "a=$(b) ",
		"many here-documents": "cat >f<<a\n$KPSSH_SECRET_A\na\n", "long words": "sudo env a=b ", "many subshells": "(set -x)\n",
	} {
		texts[name] = fill(unit)
	}
	texts["functions that call each other twice"] = doubling()
	texts["loops in loops"] = strings.Repeat("while a; do set +x\n", 140) + strings.Repeat("set -x; done\n", 140)
	texts["blocks that feed shells"] = strings.Repeat("{ ", 140) + fill("a;")[:200_000] + strings.Repeat("} | sh; ", 140)
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			findings := lint.Lint([]byte(text), script.Join)
			// An idle core needs a few hundred milliseconds for the worst; the margin is for a busy machine.
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if len(findings) > 2000 {
				t.Errorf("%d findings", len(findings))
			}
		})
	}
}

func doubling() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "f%d() { set -x; f%d; set +x; f%d; }\n", i, i+1, i+1)
	}
	return b.String() + "f0\n"
}

func TestNestingIsRefusedBeyondItsLimitOnly(t *testing.T) {
	deep := func(n int) string {
		return strict + strings.Repeat("if x; then\n", n) + "ls\n" + strings.Repeat("fi\n", n)
	}
	if got := found(lint.Lint([]byte(deep(100)), script.Leave), ""); got != nil {
		t.Errorf("100 levels: %v", got)
	}
	for _, n := range []int{400, 4000, 15000} {
		if got := found(lint.Lint([]byte(deep(n)), script.Leave), ""); len(got) != 1 || got[0] != "1 error parse-error" {
			t.Errorf("%d levels: %v", n, got)
		}
	}
	chain := strict + strings.Repeat("a && ", 200) + "b\n"
	if got := found(lint.Lint([]byte(chain), script.Leave), ""); got != nil {
		t.Errorf("a chain of 200: %v", got)
	}
}

func TestMoreFindingsThanAnyoneReadsAreCounted(t *testing.T) {
	findings := lint.Lint([]byte(strict+strings.Repeat("eval x\n", 150)), script.Leave)
	if len(findings) != 100 || !strings.HasSuffix(findings[99].Message, "; 50 more of this rule are not listed") {
		t.Errorf("%d findings, the last %+v", len(findings), findings[len(findings)-1])
	}
}

func FuzzLint(f *testing.F) {
	for _, seed := range []string{
		"", "set -euo pipefail\n", "#warrant: v1\n", "cat > f <<EOF\n$(echo $KPSSH_BOOTSTRAP_TOKEN)\nEOF\n", "{{", "\x00", "ä\xff",
		"f() { f; }; f; set -x; $KPSSH_A", "a=(${KPSSH_A[@]:1:2})", "[[ -v KPSSH_A[1] ]]", "for ((i=KPSSH_A;;)); do :; done",
		"x # hostwarrant:ignore eval y\n", "umask a=,o+r-w,g=u", "export $KPSSH_A =", "chmod -R go= \"${f}/\"*", "curl -oO x|sudo -u a env -i b=c sh",
		"select a in $KPSSH_A; do :; done", "coproc a { b; } > c &", "${!KPSSH_A*} ${KPSSH_A@Q} ${KPSSH_A//a/$KPSSH_B}", "a\\\nb $KPSSH_A\\\r\n",
	} {
		f.Add([]byte(seed), uint8(1))
	}
	known := map[string]bool{}
	for _, r := range lint.Rules() {
		known[r.ID] = true
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		phase := script.Phases()[int(n)%len(script.Phases())]
		r := lint.Check(text, phase)
		for i, found := range r.Findings {
			if !known[found.Rule] || found.Message == "" || found.Hint == "" && found.Rule != "unsignable" {
				t.Errorf("incomplete: %+v", found)
			}
			last := strings.Count(string(text), "\n") + 1
			backwards := found.EndLine < found.Line || found.EndLine == found.Line && found.EndCol < found.Col
			if found.Line < 1 || found.Col < 1 || found.EndLine > last || backwards {
				t.Errorf("place of %+v in %q", found, text)
			}
			if strings.ContainsAny(found.Message+found.Hint, "\n\r\x1b") {
				t.Errorf("raw text: %+v", found)
			}
			if i > 0 && r.Findings[i-1].Line > found.Line {
				t.Errorf("not sorted: %+v", r.Findings)
			}
		}
		for _, w := range lint.Warnings(r.Findings, 3) {
			if len(w) > lint.MaxWarning || strings.ContainsAny(w, "\n\r\x1b") {
				t.Errorf("warning %q", w)
			}
		}
	})
}
