package lint_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/lint"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// runs gives what bash prints on both streams when it runs a text as the shim does, in an empty directory.
func runBash(t *testing.T, text string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(testkit.Tool(t, "bash"), "--noprofile", "--norc", "-p", testkit.WriteFile(t, t.TempDir(), "script", []byte(text)))
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "KPSSH_BOOTSTRAP_TOKEN=s3cret", "KPSSH_TAINTS=a b", "KPSSH_VAR_n=a[$(echo ran >&2)]",
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Logf("bash: %v", err) // set -e, or an error that the script is about
	}
	return out.String(), errs.String()
}

func finds(text, rule string, level lint.Severity) bool {
	for _, f := range lint.Lint([]byte(text), script.Join) {
		if f.Rule == rule && f.Severity == level {
			return true
		}
	}
	return false
}

// Bash itself says which scripts print the secret.
func TestTracingIsJudgedAsBashTraces(t *testing.T) {
	const use = `: "$KPSSH_BOOTSTRAP_TOKEN"`
	for name, text := range map[string]string{
		"on":                        lines("set -x", use),
		"not on":                    lines("set -eu", use),
		"in a bundle":               lines("set -euxo pipefail", use),
		"by the long word":          lines("set -o xtrace", use),
		"off again":                 lines("set -x", "set +x", use),
		"off by the long word":      lines("set -x", "set +o xtrace", use),
		"an operand":                lines("set -- -x", use),
		"in a subshell":             lines("(set -x)", use),
		"inherited by a subshell":   lines("set -x", "("+use+")"),
		"behind a pipe":             lines("set -x | cat", use),
		"in a function":             lines("f() { set -x; }", "f", use),
		"before a function":         lines("f() { "+use+"; }", "set -x", "f"),
		"in a branch":               lines("if true; then set -x; fi", use),
		"in a branch that ends":     lines("if false; then set -x; exit; fi", use),
		"at the end of a loop":      lines("for i in 1 2; do", use, "set -x", "done"),
		"in the background":         lines("set -x &", "wait", use),
		"in a here-document":        lines("set -x", "cat <<EOF >/dev/null", "$KPSSH_BOOTSTRAP_TOKEN", "EOF"),
		"in a here string":          lines("set -x", `cat <<< "$KPSSH_BOOTSTRAP_TOKEN" >/dev/null`),
		"in a file's name":          lines("set -x", `: > "$KPSSH_BOOTSTRAP_TOKEN"`),
		"in a test":                 lines("set -x", `[[ $KPSSH_BOOTSTRAP_TOKEN == x ]]`),
		"in a case":                 lines("set -x", `case $KPSSH_BOOTSTRAP_TOKEN in x) ;; esac`),
		"in a list":                 lines("set -x", `for i in "$KPSSH_BOOTSTRAP_TOKEN"; do :; done`),
		"in a list, then used":      lines("set -x", `for i in "$KPSSH_BOOTSTRAP_TOKEN"; do : "$i"; done`),
		"assigned":                  lines("set -x", "t=$KPSSH_BOOTSTRAP_TOKEN"),
		"assigned before":           lines("t=$KPSSH_BOOTSTRAP_TOKEN", "set -x", `: "$t"`),
		"exported":                  lines("set -x", "export t=$KPSSH_BOOTSTRAP_TOKEN"),
		"demanded":                  lines("set -x", `: "${KPSSH_BOOTSTRAP_TOKEN:?}"`),
		"with a default":            lines("set -x", `: "${KPSSH_BOOTSTRAP_TOKEN:-}"`),
		"cut":                       lines("set -x", `: "${KPSSH_BOOTSTRAP_TOKEN#x}"`),
		"its length":                lines("set -x", `: "${#KPSSH_BOOTSTRAP_TOKEN}"`),
		"whether it is set":         lines("set -x", `: "${KPSSH_BOOTSTRAP_TOKEN:+x}"`),
		"as a default":              lines("set -x", `: "${x:-$KPSSH_BOOTSTRAP_TOKEN}"`),
		"substituted in a document": lines("set -x", "cat <<EOF >/dev/null", "$("+use+")", "EOF"),
		"for one command":           lines("set -x", `T=$KPSSH_BOOTSTRAP_TOKEN true`),
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr := runBash(t, text)
			if printed, found := strings.Contains(stderr, "s3cret"), finds(text, "trace-secrets", lint.Error); printed != found {
				t.Errorf("bash prints it: %v, lint finds it: %v\n%s%s", printed, found, text, stderr)
			}
		})
	}
}

// Bash itself says what is set behind each spelling.
func TestStrictModeIsJudgedAsBashSetsIt(t *testing.T) {
	const ask = `if [[ -o errexit && -o nounset && -o pipefail ]]; then echo strict; fi`
	for _, set := range []string{
		"set -euo pipefail", "set -eu", "set -eo pipefail", "set -uo pipefail", "set -Eeuxo pipefail", "set -o errexit -o nounset -o pipefail",
		"set -eu -o pipefail", "set -e\nset -u\nset -o pipefail", "set -o pipefail -eu", "set -oeu pipefail", "set +euo pipefail", "set -- -euo pipefail",
		"set -euo pipefail | cat", "(set -euo pipefail)", "set - -euo pipefail", "set -euo pipefail extra", "set -e -u -x -o pipefail", "set '-euo' \"pipefail\"",
		"set -euo pipefail; set -x", "shopt -s nullglob; set -euo pipefail", "set -euo pipefail &", "builtin set -euo pipefail",
	} {
		text := set + "\n" + ask + "\n"
		stdout, _ := runBash(t, text)
		strictly := !finds(text, "missing-strict-mode", lint.Warning)
		if strings.Contains(stdout, "strict") != strictly {
			t.Errorf("lint takes it for strict: %v, and bash says %q\n%s", strictly, stdout, text)
		}
	}
}

// Bash itself says where a value of two words becomes two.
func TestSplittingIsJudgedAsBashSplits(t *testing.T) {
	const count = "n() { echo \"$#\"; }\n"
	for text, one := range map[string]string{
		`n $KPSSH_TAINTS`: "1", `n "$KPSSH_TAINTS"`: "1", `n x$KPSSH_TAINTS`: "1", `n ${KPSSH_TAINTS:-x}`: "1", `n "${x:-$KPSSH_TAINTS}"`: "1",
		`n ${x:-$KPSSH_TAINTS}`: "1", `n ${x:-"$KPSSH_TAINTS"}`: "1", `n ${#KPSSH_TAINTS}`: "1", `n ${KPSSH_TAINTS:+x}`: "1", `n ${KPSSH_TAINTS#z}`: "1",
		`n "$(echo $KPSSH_TAINTS)"`: "1", `n '$KPSSH_TAINTS'`: "1", `x=$KPSSH_TAINTS; n "$x"`: "1", `export x=$KPSSH_TAINTS; n "$x"`: "1",
		`a=($KPSSH_TAINTS); n "${a[@]}"`: "1", `a=("$KPSSH_TAINTS"); n "${a[@]}"`: "1", `for i in $KPSSH_TAINTS; do n $KPSSH_HOST_ADDRESS; done`: "0",
		`case $KPSSH_TAINTS in "a b") n x ;; esac`: "1", `[[ $KPSSH_TAINTS == "a b" ]] && n x`: "1", `f() { local y=$KPSSH_TAINTS; n "$y"; }; f`: "1",
		`x=${x:-$KPSSH_TAINTS}; n "$x"`: "1", `read -r x <<< $KPSSH_TAINTS; n "$x"`: "1",
	} {
		stdout, _ := runBash(t, count+text+"\n")
		split := strings.TrimSpace(stdout) != one
		if strings.Contains(text, "$(echo") {
			split = true // split and joined again by echo
		}
		if found := finds(count+text+"\n", "unquoted-parameter", lint.Warning); split != found {
			t.Errorf("bash splits: %v, lint finds it: %v in %s (%q)", split, found, text, stdout)
		}
	}
}

// Bash itself says where a value runs as arithmetic.
func TestArithmeticIsJudgedAsBashEvaluates(t *testing.T) {
	for _, text := range []string{
		`x=$((KPSSH_VAR_n))`, `x=$(($KPSSH_VAR_n))`, `((KPSSH_VAR_n))`, `let x=KPSSH_VAR_n`, `[[ $KPSSH_VAR_n -gt 1 ]]`, `x=abc; : "${x:$KPSSH_VAR_n}"`,
		`for ((i=KPSSH_VAR_n; 0; )); do :; done`, `[[ $KPSSH_VAR_n == 1 ]]`, `[ "$KPSSH_VAR_n" -gt 1 ]`, `x=$((${#KPSSH_VAR_n}))`, `: "$KPSSH_VAR_n"`,
		`x=$KPSSH_VAR_n`, `[[ -n $KPSSH_VAR_n ]]`, `[[ $KPSSH_VAR_n < 1 ]]`,
	} {
		_, stderr := runBash(t, text+"\n")
		if ran, found := strings.Contains(stderr, "ran\n") || stderr == "ran\n", finds(text+"\n", "arithmetic-parameter", lint.Warning); ran != found {
			t.Errorf("bash runs it: %v, lint finds it: %v in %s (%q)", ran, found, text, stderr)
		}
	}
}
