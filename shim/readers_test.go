package shim

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readers are the shim's readers under one shell, in one process for all inputs.
type readers struct {
	dir    string
	cmd    *exec.Cmd
	asked  io.WriteCloser
	said   *bufio.Reader
	stderr *os.File
}

// eachShell runs a test with the readers under each shell that a host may have as
// /bin/sh; with -short only the first.
func eachShell(t *testing.T, test func(*testing.T, *readers)) {
	t.Helper()
	needTools(t, "dash", "busybox", "bash")
	shells := [][]string{{"dash"}, {"busybox", "sh"}, {"bash", "--posix"}}
	if testing.Short() {
		shells = shells[:1]
	}
	for _, shell := range shells {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			test(t, startReaders(t, shell))
		})
	}
}

func startReaders(t *testing.T, shell []string) *readers {
	t.Helper()
	text, err := os.ReadFile("kpssh-shim")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), "\n# First of all, ")
	_, rest, ends := strings.Cut(rest, "\n\n")
	starting, rest, called := strings.Cut(rest, "\nbegin\n")
	rest, calls := strings.CutSuffix(starting+rest, "\nmain \"$@\"\n")
	if !begins || !ends || !called || !calls {
		t.Fatal("the shim does not begin with its fresh start, call begin and end in the call of main")
	}
	without := head + "\n" + rest
	r := &readers{dir: memory(t)}
	for name, content := range map[string]string{"shim": without, "input": "", "stderr": ""} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(r.dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r.stderr, err = os.Create(filepath.Join(r.dir, "stderr")); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(shell[0], append(shell[1:], "tests/readers", r.dir, filepath.Join(r.dir, "shim"))...)
	r.cmd.Env = []string{}
	r.cmd.Stderr = r.stderr
	if r.asked, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.said = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(t) })
	return r
}

// memory is a directory that is no disk's, which the shim insists on.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "shim-readers-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// stop holds the process to a quiet end, with nothing executed.
func (r *readers) stop(t *testing.T) {
	t.Helper()
	if err := r.asked.Close(); err != nil {
		t.Error(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("the readers ended: %v", err)
	}
	if fault := r.strayed(); fault != "" {
		t.Error(fault)
	}
}

// bashOnNUL is what bash, alone of the shells, says where it drops a NUL.
const bashOnNUL = "warning: command substitution: ignored null byte in input\n"

// strayed says what a reader did that is not reading. An input that is executed anywhere
// leaves a file in the directory where the readers run (payloads).
func (r *readers) strayed() string {
	left, err := os.ReadDir(filepath.Join(r.dir, "empty"))
	if err != nil {
		return err.Error()
	}
	if len(left) > 0 {
		return "an input was executed: it made " + left[0].Name()
	}
	text, err := os.ReadFile(r.stderr.Name())
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, bashOnNUL) {
			return "stderr is not empty: " + line
		}
	}
	return ""
}

// ask returns what a reader says of an input.
func (r *readers) ask(t *testing.T, reader string, input []byte) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "input"), input, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(r.asked, reader+"\n"); err != nil {
		t.Fatal(err)
	}
	// a reader that hangs is killed, and then said is at its end
	watch := time.AfterFunc(2*time.Minute, func() {
		if err := r.cmd.Process.Kill(); err != nil {
			t.Logf("killing the readers: %v", err)
		}
	})
	defer watch.Stop()
	var answer strings.Builder
	for {
		line, err := r.said.ReadString('\n')
		if err != nil {
			t.Fatalf("the readers stopped: %v; input %q", err, input[:min(len(input), 2000)])
		}
		if line == ".\n" {
			return answer.String()
		}
		answer.WriteString(line)
	}
}

// differs compares what Go says with what a shell says. Of a refusal Go says the code
// and as much of the sentence as both must agree on.
func differs(want, said string) string {
	if strings.HasPrefix(want, "refused ") {
		if rest, ok := strings.CutPrefix(said, want); ok && (rest[0] == ' ' || rest[0] == '\n') {
			return ""
		}
		return "the shell says " + strings.TrimSpace(said) + "; Go: " + want
	}
	if d := cmp.Diff(want, said); d != "" {
		return "Go (-) and the shell (+) differ:\n" + d
	}
	return ""
}
