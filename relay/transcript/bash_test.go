package transcript

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// statements print the value of S as shells do that trace or quote, and what is to be left of each line
// that tells of it, without quotes.
func statements() map[string]string {
	return map[string]string{
		`set -x; : "$S"`:                              "+ : [redacted]\n",
		`set -x; : "a=$S"`:                            "+ : a=[redacted]\n",
		`set -x; : "<$S>"`:                            "+ : <[redacted]>\n",
		`set -x; T=$S`:                                "+ T=[redacted]\n",
		`set -x; T=$S true`:                           "+ T=[redacted]\n+ true\n",
		`set -x; [ "$S" = a ]`:                        "+ [ [redacted] = a ]\n",
		`set -x; [[ $S = a ]]`:                        "+ [[ [redacted] = a ]]\n",
		`set -x; [[ a = "$S" ]]`:                      "+ [[ a = [redacted] ]]\n",
		`set -x; [[ a = x"$S"x ]]`:                    "+ [[ a = x[redacted]x ]]\n",
		`set -x; for i in "$S"; do :; done`:           "+ for i in $S\n+ :\n",
		`set -x; eval : '"$S"'`:                       "+ eval : $S\n++ : [redacted]\n",
		`set -x; a=("$S")`:                            "+ a=($S)\n",
		`printf '%q\n' "$S"`:                          "[redacted]\n",
		`printf '%s\n' "${S@Q}"`:                      "[redacted]\n",
		`printf '%s\n' "$S"`:                          "[redacted]\n",
		`declare -p S`:                                "declare -x S=[redacted]\n",
		`export -p | grep -a '^declare -x S='`:        "declare -x S=[redacted]\n",
		`set | grep -a '^S='`:                         "S=[redacted]\n",
		`trap ": $S" USR1; trap -p USR1; trap - USR1`: "trap -- : [redacted] SIGUSR1\n",
		`alias x="$S"; alias x`:                       "alias x=[redacted]\n",
	}
}

// secrets of chance: what a value of a warrant's parameter may be, but for LF, CR and NUL.
func secretOfChance(r *rand.Rand) string {
	parts := []string{"'", "\\", "\"", "$", "`", " ", "*", "?", "~", "!", "#", "=", "{", "}", "(", "|", "&", ";", "<", "%", "é", "日", "\u200b", "\u0301", "\xff", "\xc3", "\x1b", "\x7f", "\a", "\t", "\x01", "n", "0", "3", "x", "E", "abc", "012"}
	var s strings.Builder
	for s.Len() < 8 || r.IntN(12) > 0 {
		if r.IntN(2) == 0 {
			s.WriteByte(byte('a' + r.IntN(26)))
			continue
		}
		s.WriteString(parts[r.IntN(len(parts))])
	}
	return s.String()
}

// unquoted takes away what quotes, which stays where it stood around a secret.
func unquoted(s string) string {
	return strings.NewReplacer("$'", "", "'", "", `"`, "", `\`, "").Replace(s)
}

// What real shells print of a secret does not depend on it any more, whatever it holds and in whichever locale.
func TestNoSpellingOfAShellShows(t *testing.T) {
	bash, dash := testkit.Tool(t, "bash"), testkit.Tool(t, "dash")
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cases each time
	for range 12 {
		secret := secretOfChance(r)
		for _, locale := range []string{"C", "C.UTF-8"} {
			for script, want := range statements() {
				left(t, shell(t, locale, secret, bash, "--noprofile", "--norc", "-c", script), secret, want)
			}
			left(t, shell(t, locale, secret, dash, "-xc", `: "$S"`), secret, "+ : [redacted]\n")
			left(t, shell(t, locale, secret, dash, "-c", `set | grep -a '^S='`), secret, "S=[redacted]\n")
		}
	}
}

// left wants that of what a shell has printed.
func left(t *testing.T, printed []byte, secret, want string) {
	t.Helper()
	got := string(New([]string{secret}).Stdout.redactor.hide(printed, 0))
	if unquoted(got) != unquoted(want) {
		t.Errorf("%q: %q is shown as %q, want %q", secret, printed, got, want)
	}
}

// shell runs one with S in its environment. What it prints counts, and not how it ends.
func shell(t *testing.T, locale, secret string, command ...string) []byte {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=" + locale, "S=" + secret}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
