package shim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	warrants "github.com/hostwarrant/hostwarrant/internal/warrant/corpus"
)

// The reader of warrants in the shim stands between these two lines.
const (
	readerBegins = "# --- begin warrant reader "
	readerEnds   = "# --- end warrant reader ---\n"
)

// readAll runs the reader over files named 0, 1, 2 … in a directory and prints of
// each what saysOf says.
const readAll = `#!/bin/sh
set -euf
export LC_ALL=C
LF='
'
WARRANT=14 INTERNAL=1
refuse() { # CODE SENTENCE
	printf 'refused %s %s\n' "$1" "$2"
	exit 0
}
list() { # KEY LINES
	IFS=$LF
	for line in $2; do
		printf '%s %s\n' "$1" "$line"
	done
	unset IFS
}
dump() {
	printf '%s\n' "profile $w_profile" "phase $w_phase" "serial $w_serial" "not-before $w_not_before" "not-after $w_not_after" \
		"leave-sha256 $w_leave" "uninstall-sha256 $w_uninstall"
	list target "$w_targets"
	list param "$w_params"
	printf '%s\n' "timeout $w_timeout"
}
file=0
while [ -e "$1/$file" ]; do
	printf '== %s\n' "$file"
	(
		# two processes less where it has nothing to find
		nul='' template='' warranted=1
		[ -e "$1/$file.plain" ] || look_inside "$1/$file"
		if [ -n "$warranted" ]; then
			read_warrant "$1/$file"
			dump
		else
			printf 'none\n'
		fi
	)
	file=$((file + 1))
done
`

// reader is the shim's reader of warrants as a program of its own.
func reader(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("kpssh-shim")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), readerBegins)
	part, _, ends := strings.Cut(rest, readerEnds)
	if !begins || !ends || strings.Contains(part, readerBegins) {
		t.Fatal("the shim does not mark its reader of warrants once")
	}
	head, tail, ok := strings.Cut(readAll, "file=0\n")
	if !ok {
		t.Fatal("no place for the reader")
	}
	path := filepath.Join(t.TempDir(), "read")
	if err := os.WriteFile(path, []byte(head+"#"+part+"file=0\n"+tail), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shells runs each of the shells that a host may have as /bin/sh; with -short only
// the first.
func shells() map[string][]string {
	if testing.Short() {
		return map[string][]string{"dash": {"dash"}}
	}
	return map[string][]string{"dash": {"dash"}, "busybox": {"busybox", "sh"}, "bash": {"bash", "--posix"}}
}

// read runs the reader over scripts, in one process, and returns what it says of each.
func read(t *testing.T, shell []string, scripts [][]byte) []string {
	t.Helper()
	dir := t.TempDir()
	for i, s := range scripts {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), s, 0o600); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(append([]byte("\n"), s...), []byte("\n#warrant: v1\n")) && !bytes.Contains(s, []byte("\x00")) {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".plain"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(deadline(t), shell[0], append(shell[1:], reader(t), dir)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\nafter %.300s", err, stderr.Bytes(), out.Bytes()[max(0, out.Len()-300):])
	}
	parts := strings.Split(out.String(), "== ")[1:]
	if len(parts) != len(scripts) {
		t.Fatalf("%d answers to %d scripts", len(parts), len(scripts))
	}
	for i, p := range parts {
		_, parts[i], _ = strings.Cut(p, "\n")
	}
	return parts
}

// saysOf is what internal/warrant says of a script, in the same form. Of a refusal
// that is the line.
func saysOf(t *testing.T, text []byte) string {
	t.Helper()
	w, err := warrant.Find(text)
	switch {
	case err != nil:
		e := decision.From(err)
		line, _, ok := strings.Cut(e.What, ":")
		if e.Reason != decision.WarrantMalformed || !ok {
			t.Fatalf("Find: %v", err)
		}
		return "refused 14 script: " + line
	case w == nil:
		return "none\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s\nphase %s\nserial %d\n", w.Profile, w.Phase, w.Serial)
	fmt.Fprintf(&b, "not-before %s\n", onlyIf(w.HasNotBefore, strconv.FormatInt(w.NotBefore, 10)))
	if w.Never {
		b.WriteString("not-after never\n")
	} else {
		fmt.Fprintf(&b, "not-after %d\n", w.NotAfter)
	}
	fmt.Fprintf(&b, "leave-sha256 %s\nuninstall-sha256 %s\n", w.LeaveSHA256, w.UninstallSHA256)
	for _, target := range w.Targets {
		fmt.Fprintf(&b, "target %s\n", target)
	}
	for _, p := range w.Params {
		fmt.Fprintf(&b, "param %s\n", p)
	}
	fmt.Fprintf(&b, "timeout %s\n", onlyIf(w.Timeout != 0, strconv.Itoa(w.Timeout)))
	return b.String()
}

func onlyIf(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

// agrees compares what a shell said with what Go says.
func agrees(t *testing.T, text []byte, said string) {
	t.Helper()
	want := saysOf(t, text)
	if strings.HasPrefix(want, "refused") {
		said, _, _ = strings.Cut(strings.TrimSuffix(said, "\n")+" ", " is ")
		if !strings.HasPrefix(said+" ", want+" ") && !strings.HasPrefix(said, want+":") {
			t.Errorf("the shell says %q, Go %q", said, want)
		}
		return
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("Go (-) and the shell (+) differ:\n%s", d)
	}
}

// TestWarrantReadersAgree: the shim accepts exactly what internal/warrant accepts,
// reads the same in it, and finds the fault in the same line.
func TestWarrantReadersAgree(t *testing.T) {
	needTools(t, "dash", "busybox", "bash")
	text, err := os.ReadFile("../internal/warrant/testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := warrants.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	scripts := make([][]byte, 0, len(list))
	for _, c := range list {
		scripts = append(scripts, c.Script)
	}
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, said := range read(t, shell, scripts) {
				t.Run(list[i].Name, func(t *testing.T) { agrees(t, list[i].Script, said) })
			}
		})
	}
}
