package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const checked = `package p

import "errors"

func F(n int) error {
	// check: Malformed: a tested check
	if n < 0 {
		return errors.New("negative")
	}
	// check: TooLarge: a check that nobody tests
	if n > 9 {
		return errors.New("large")
	}
	return nil
}
`

const checkedTest = `package p

import (
	"os/exec"
	"testing"
)

func TestF(t *testing.T) {
	if F(-1) == nil || F(1) != nil {
		t.Error("wrong")
	}
}

func TestGuard(t *testing.T) {
	if exec.Command("/bin/sh", "../shim/guard", "x").Run() == nil {
		t.Error("the guard let x in")
	}
}
`

const guard = `#!/bin/sh
# check: 4: a tested check in a script
[ "$1" != x ] || exit 4
# check: 3: a check in a script that nobody tests
[ "$1" != y ] || exit 3
`

func TestSurvivorsAreNamed(t *testing.T) {
	newModule(t, map[string]string{"p/p.go": checked, "p/p_test.go": checkedTest, "shim/guard": guard})
	code, out, _ := mutants(t)
	want := []string{
		"survived: p/p.go:10: TooLarge: a check that nobody tests",
		"survived: shim/guard:4: 3: a check in a script that nobody tests",
		"4 checks: 2 killed, 2 survived, 0 broken, 0 hung",
	}
	if code != exitSurvived {
		t.Errorf("exit status %d, want %d", code, exitSurvived)
	}
	for _, line := range want {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("%q is missing in:\n%s", line, out)
		}
	}
}

func TestOnlyTheWantedMarksAreTried(t *testing.T) {
	newModule(t, map[string]string{"p/p.go": checked, "p/p_test.go": checkedTest, "shim/guard": guard})
	code, out, _ := mutants(t, "-run", ": Malformed:")
	if want := "1 checks: 1 killed, 0 survived, 0 broken, 0 hung\n"; code != exitKilled || out != want {
		t.Errorf("exit status %d and %q, want %d and %q", code, out, exitKilled, want)
	}
	if left, err := os.ReadFile("p/p.go"); err != nil || string(left) != checked {
		t.Errorf("the source was touched: %v\n%s", err, left)
	}
}

func TestWhatCannotBeDecidedIsNoSuccess(t *testing.T) {
	failing := strings.Replace(checkedTest, "F(-1) == nil", "F(1) == nil", 1)
	tests := map[string]struct {
		files map[string]string
		args  []string
		code  int
		says  string
	}{
		"no mark at all":               {map[string]string{"p/p.go": "package p\n"}, nil, exitUndone, "nothing was tried"},
		"no mark that matches":         {map[string]string{"p/p.go": checked}, []string{"-run", "Nothing"}, exitUndone, "nothing was tried"},
		"a mark that cannot be used":   {map[string]string{"p/p.go": "package p\n\n// check: Unsigned: why\nvar x = 1\n"}, nil, exitUndone, "directly above an if"},
		"tests that fail anyway":       {map[string]string{"p/p.go": checked, "p/p_test.go": failing}, nil, exitUndone, "tests fail without any mutant"},
		"an argument that means none":  {map[string]string{"p/p.go": checked}, []string{"p/p.go"}, exitUsage, "usage"},
		"an expression that is broken": {map[string]string{"p/p.go": checked}, []string{"-run", "("}, exitUsage, "usage"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			newModule(t, test.files)
			code, _, says := mutants(t, test.args...)
			if code != test.code || !strings.Contains(says, test.says) {
				t.Errorf("exit status %d and %q, want %d and %q", code, says, test.code, test.says)
			}
		})
	}
}

func TestOnlyAFailedTestKillsAMutant(t *testing.T) {
	for output, want := range map[string]verdict{
		"--- FAIL: TestF\nFAIL":                          killed,
		"FAIL p [build failed]":                          broken,
		"FAIL p [setup failed]":                          broken,
		"panic: test timed out after 10m0s\nFAIL p 600s": hung,
	} {
		if got := judge(output); got != want {
			t.Errorf("%q is %s, want %s", output, got, want)
		}
	}
}

// newModule makes a module in a directory of its own and goes there.
func newModule(t *testing.T, files map[string]string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "module")
	files["go.mod"] = "module example.test/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, output)
	}
	t.Chdir(dir)
}

func mutants(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, faults bytes.Buffer
	code = run(t.Context(), args, &out, &faults)
	return code, out.String(), faults.String()
}
