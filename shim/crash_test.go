//go:build linux && amd64

package shim

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/testkit/shimhost"
)

// The tests of this file end the shim, take away the power or let a call fail at each of
// the steps by which it changes what it keeps, and look at what a run after that finds.

// inNamespace runs the calling test once more, in namespaces where a host can be made, and
// reports whether this is that second time.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if shimhost.Inside() {
		return true
	}
	needRootAndTools(t)
	t.Parallel()
	cmd := shimhost.Again("-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+left(t).String(), fmt.Sprintf("-test.short=%v", testing.Short()))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

// left is the time that a test may still take.
func left(t *testing.T) time.Duration {
	end, ok := t.Deadline()
	if !ok {
		return time.Hour
	}
	return time.Until(end)
}

// places are what must outlive a crash.
func places() []string { return []string{shimhost.State, shimhost.Etc} }

// ran is where scripts of these tests write that they ran.
const ran = "/mnt/ran"

// world is a host with a past, to which it can be set back.
type world struct {
	t    *testing.T
	host *shimhost.Host
	past shimhost.Tree
}

func newWorld(t *testing.T) *world {
	t.Helper()
	host, err := shimhost.New("kpssh-shim", "warrant=required\n")
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, host: host}
}

// underEachShell tests with each shell that a host may have as /bin/sh; with -short only
// with the first.
func (w *world) underEachShell(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	shells := shimhost.Shells()
	if testing.Short() {
		shells = shells[:1]
	}
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			w.t = t
			if err := shimhost.UseShell(shell); err != nil {
				t.Fatal(err)
			}
			test(t)
		})
	}
}

// settle makes the host as it is now the past that back goes to.
func (w *world) settle() {
	w.t.Helper()
	past, err := shimhost.TakeTree(places()...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.past = past
}

// back sets the host back to a tree, as after a boot: nothing is left in memory.
func (w *world) back(to shimhost.Tree) {
	w.t.Helper()
	if err := to.Restore(places()...); err != nil {
		w.t.Fatal(err)
	}
	for _, path := range []string{shimhost.Work, ran} {
		if err := os.RemoveAll(path); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run is an envelope that has a script run.
type run struct {
	phase  script.Phase
	serial int64
	id     envelope.RunID
	text   []byte // the script
	sent   []byte // the envelope
}

func (w *world) script(phase script.Phase, serial int64) run {
	w.t.Helper()
	warrant := w.host.Warrant(shimhost.Profile, phase, serial)
	text, err := shimhost.Script(1000, warrant)
	if err != nil {
		w.t.Fatal(err)
	}
	text = append(text, fmt.Sprintf("echo %s %d >>%s\n", phase, serial, ran)...)
	return w.again(run{phase: phase, serial: serial, text: text})
}

// again is the same script with a new run-id.
func (w *world) again(r run) run {
	w.t.Helper()
	var err error
	if r.id, err = envelope.NewRunID(rand.Reader); err != nil {
		w.t.Fatal(err)
	}
	if r.sent, err = w.host.Envelope(r.phase, r.id, r.text, shimhost.Params()); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) send(text []byte) shimhost.Answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := shimhost.Send(ctx, text)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func (w *world) mustSend(text []byte, code envelope.ExitCode) shimhost.Answer {
	w.t.Helper()
	answer := w.send(text)
	if answer.Code != code {
		w.t.Fatalf("answered %d, not %d: %s%s", answer.Code, code, answer.Stdout, answer.Stderr)
	}
	return answer
}

// hasRun lists the scripts that ran since the host was set back.
func (w *world) hasRun() []string {
	w.t.Helper()
	text, err := os.ReadFile(ran)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

// steps lists what the shim does on an envelope, from the past.
func (w *world) steps(text []byte) []shimhost.Step {
	w.t.Helper()
	w.back(w.past)
	var steps []shimhost.Step
	answer, err := shimhost.Watch(text, shimhost.Watcher{Before: func(_ int, s shimhost.Step) syscall.Errno {
		steps = append(steps, s)
		return 0
	}}, append(places(), ran)...)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.Code != envelope.ExitOK {
		w.t.Fatalf("answered %d: %s", answer.Code, answer.Stderr)
	}
	return steps
}

// crashes calls check with each state that a crash during the handling of an envelope may
// leave, and with what had run until then. First all processes of the shim are ended at
// each step, and nothing else; then the power is lost before each step, and with it what
// was not synced.
func (w *world) crashes(sent []byte, check func(at string, had []string)) {
	w.t.Helper()
	if !testing.Short() { // a loss of power leaves more to mend
		w.kills(sent, check)
	}
	lost := w.losses(sent)
	for _, l := range lost {
		w.back(l.tree)
		check(l.at, l.had)
	}
	w.t.Logf("%d states after a loss of power", len(lost))
}

func (w *world) kills(sent []byte, check func(at string, had []string)) {
	w.t.Helper()
	steps := w.steps(sent)
	for n, step := range steps {
		w.back(w.past)
		answer, err := shimhost.Watch(sent, shimhost.Watcher{Before: func(i int, _ shimhost.Step) syscall.Errno {
			if i == n+1 {
				return shimhost.Crash
			}
			return 0
		}}, append(places(), ran)...)
		if err != nil {
			w.t.Fatal(err)
		}
		if answer.Code != shimhost.Crashed {
			w.t.Fatalf("the shim was not ended at step %d of %d: %d %s", n+1, len(steps), answer.Code, answer.Stderr)
		}
		had := w.hasRun()
		w.forget()
		check(fmt.Sprintf("killed before step %d, %s", n+1, step), had)
	}
	w.t.Logf("killed at %d steps", len(steps))
}

// forget empties the list of what ran.
func (w *world) forget() {
	w.t.Helper()
	if err := os.RemoveAll(ran); err != nil {
		w.t.Fatal(err)
	}
}

// loss is a state that a loss of power may leave.
type loss struct {
	at   string
	tree shimhost.Tree
	had  []string
}

// losses watches the shim once, and at each of its steps asks what would be left.
func (w *world) losses(sent []byte) []loss {
	w.t.Helper()
	w.back(w.past)
	disk, err := shimhost.NewDisk(places()...)
	if err != nil {
		w.t.Fatal(err)
	}
	var found []loss
	known := map[string]bool{}
	look := func(at string) {
		trees, err := disk.Lost()
		if err != nil {
			w.t.Error(err)
			return
		}
		had := w.hasRun()
		for way, tree := range trees {
			if name := fmt.Sprint(tree, had); !known[name] {
				known[name] = true
				ways := []string{"bytes", "names", "names and bytes"}
				found = append(found, loss{fmt.Sprintf("power lost %s, with %s that were not synced", at, ways[way]), tree, had})
			}
		}
	}
	answer, err := shimhost.Watch(sent, shimhost.Watcher{
		Before: func(n int, s shimhost.Step) syscall.Errno {
			look(fmt.Sprintf("before step %d, %s", n, s))
			return 0
		},
		After: func(_ int, s shimhost.Step) {
			if s.Call == "fsync" {
				if err := disk.Synced(s.Path); err != nil {
					w.t.Error(err)
				}
			}
		},
	}, append(places(), ran)...)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.Code != envelope.ExitOK {
		w.t.Fatalf("answered %d: %s", answer.Code, answer.Stderr)
	}
	look("at the end")
	return found
}

// final is the state that an envelope leads to, from the past.
func (w *world) final(sent []byte) shimhost.Tree {
	w.t.Helper()
	w.back(w.past)
	w.mustSend(sent, envelope.ExitOK)
	tree, err := shimhost.TakeTree(places()...)
	if err != nil {
		w.t.Fatal(err)
	}
	return tree
}

// halfWritten names a file that is neither as it was nor as it must become. What a crash
// may leave beside the files has a name that ends in ~; records and the lock tell for
// themselves how far they came.
func (w *world) halfWritten(now, final shimhost.Tree) string {
	for path, node := range now {
		if node.Mode.IsDir() || strings.HasSuffix(path, "~") || strings.HasPrefix(path, shimhost.State+"/runs/") ||
			path == shimhost.State+"/running" || path == shimhost.State+"/lock" || path == shimhost.State+"/statements/rendered" {
			continue
		}
		if !same(node, w.past[path]) && !same(node, final[path]) {
			return fmt.Sprintf("%s holds %q", path, node.Content)
		}
	}
	return ""
}

func same(a, b *shimhost.Node) bool {
	return a != nil && b != nil && bytes.Equal(undated(a.Content), undated(b.Content)) && a.Mode == b.Mode
}

// undated takes out of a KRL when it was made (PROTOCOL.krl).
func undated(content []byte) []byte {
	const date, rest = 20, 28
	if !bytes.HasPrefix(content, []byte("SSHKRL\n\x00")) || len(content) < rest {
		return content
	}
	return slices.Concat(content[:date], content[rest:])
}

func (w *world) mark() string {
	w.t.Helper()
	text, err := os.ReadFile(shimhost.State + "/marks/" + shimhost.Profile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) now() shimhost.Tree {
	w.t.Helper()
	tree, err := shimhost.TakeTree(places()...)
	if err != nil {
		w.t.Fatal(err)
	}
	return tree
}

// outcome asks for the record of a run.
func (w *world) outcome(id envelope.RunID) string {
	w.t.Helper()
	text, err := envelope.Envelope{Phase: envelope.PhaseOutcome, RunID: id}.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	answer := w.send(text)
	if answer.Code != envelope.ExitOK {
		w.t.Fatalf("outcome answered %d: %s", answer.Code, answer.Stderr)
	}
	return answer.Stdout
}

// afterRun holds what a crash during r left to: no mark older than what ran, no run that
// ran without a record, no half-written file; and the host goes on.
func (w *world) afterRun(at string, r run, had []string, final shimhost.Tree, older *run) {
	w.t.Helper()
	fail := func(format string, args ...any) { w.t.Helper(); w.t.Errorf(at+": "+format, args...) }
	if half := w.halfWritten(w.now(), final); half != "" {
		fail("half written: %s", half)
	}
	raised := w.mark() == string(final[shimhost.State+"/marks/"+shimhost.Profile].Content)
	if len(had) > 0 && !raised {
		fail("the script ran, and the mark is %q", w.mark())
	}
	outcome := w.outcome(r.id)
	known := strings.Contains(outcome, " state=ended ")
	if len(had) > 0 && !known || !known && !strings.Contains(outcome, " state=unknown ") {
		fail("%d scripts ran, and the outcome is %s", len(had), outcome)
	}
	if older != nil {
		want := envelope.ExitOK
		if raised {
			want = envelope.ExitRollback
		}
		if answer := w.send(w.again(*older).sent); answer.Code != want {
			fail("an older script answers %d, not %d: %s", answer.Code, want, answer.Stderr)
		}
	}
	w.forget()
	answer := w.send(r.sent)
	switch ranAgain := len(w.hasRun()) > 0; {
	case known && ranAgain:
		fail("it ran twice")
	case known && answer.Code != envelope.ExitInternal && answer.Code != envelope.ExitOK:
		fail("asked again, it answers %d: %s", answer.Code, answer.Stderr)
	case !known && (answer.Code != envelope.ExitOK || !ranAgain):
		fail("sent again, it answers %d: %s", answer.Code, answer.Stderr)
	}
	if answer := w.send(w.again(r).sent); answer.Code != envelope.ExitOK {
		fail("with a new run-id it answers %d: %s", answer.Code, answer.Stderr)
	}
}

// TestACrashInARun: see afterRun.
func TestACrashInARun(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	older := w.script(script.Join, 5)
	t.Run("the first of a host", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it has many steps")
		}
		w.t = t
		w.settle()
		final := w.final(older.sent)
		w.crashes(older.sent, func(at string, had []string) { w.afterRun(at, older, had, final, nil) })
	})
	w.t = t
	w.mustSend(w.again(older).sent, envelope.ExitOK)
	w.settle()
	t.Run("one with a new serial", func(t *testing.T) {
		w.t = t
		newer := w.script(script.Join, 6)
		final := w.final(newer.sent)
		w.crashes(newer.sent, func(at string, had []string) { w.afterRun(at, newer, had, final, &older) })
	})
}

// TestACrashInALeave: at every moment the host keeps a script to leave by that it takes.
func TestACrashInALeave(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	w.mustSend(w.script(script.Join, 5).sent, envelope.ExitOK)
	w.mustSend(w.script(script.Leave, 5).sent, envelope.ExitOK)
	w.settle()
	newer := w.script(script.Leave, 6)
	final := w.final(newer.sent)
	kept := w.again(run{phase: script.Leave, text: []byte{}})
	w.crashes(newer.sent, func(at string, had []string) {
		if answer := w.send(w.again(kept).sent); answer.Code != envelope.ExitOK || len(w.hasRun()) != 1 {
			w.t.Errorf("%s: the kept leave answers %d and ran %q: %s", at, answer.Code, w.hasRun(), answer.Stderr)
		}
		w.forget()
		w.afterRun(at, newer, had, final, nil)
	})
}

// bring is a statement on its way, and what a host that took it must hold.
func (w *world) bring(s statement.Statement) []byte {
	w.t.Helper()
	sent, err := w.host.Statement(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return sent
}

// statements is one of each kind that leaves the host able to run what afterStatement sends.
func (w *world) statements(successor ssh.Signer) map[statement.Kind]statement.Statement {
	stranger, err := shimhost.NewKey()
	if err != nil {
		w.t.Fatal(err)
	}
	soon := w.host.Made.Add(60 * 24 * time.Hour).Unix()
	return map[statement.Kind]statement.Statement{
		statement.KindRoots: {Kind: statement.KindRoots, Serial: 2, Roots: &statement.Roots{Threshold: 1, Keys: []ssh.PublicKey{w.host.Root.PublicKey(), successor.PublicKey()}}},
		statement.KindSigners: {Kind: statement.KindSigners, Serial: 1, Signers: &statement.Signers{
			Expires: soon, MaxValidityDays: 60, Thresholds: [4]int{1, 1, 1, 1}, Lines: []string{w.host.SignerLine(), `join@other-* namespaces="kpssh" ` + shimhost.PublicLine(stranger)},
		}},
		statement.KindRevoke: {Kind: statement.KindRevoke, Serial: 1, Revoke: []string{ssh.FingerprintSHA256(stranger.PublicKey())}},
		statement.KindFloor:  {Kind: statement.KindFloor, Serial: 1, Floors: []statement.Floor{{Profile: "other-*", Serial: 3}, {Profile: shimhost.Profile, Serial: 2}}},
		statement.KindReset:  {Kind: statement.KindReset, Serial: 1, Reset: &statement.Reset{Profile: shimhost.Profile, Mark: 4, SHA256: [4]string{1: strings.Repeat("0b", 32)}}},
	}
}

// TestACrashInAStatement: no trust file is ever half written, the next shim of any kind
// brings kept statements and trust files together, and the statement can be sent again.
func TestACrashInAStatement(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	if !inNamespace(t) {
		return
	}
	w := newWorld(t)
	successor, err := shimhost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	r := w.script(script.Join, 5)
	w.mustSend(r.sent, envelope.ExitOK)
	w.settle()
	for kind, s := range w.statements(successor) {
		t.Run(string(kind), func(t *testing.T) {
			w.t = t
			sent := w.bring(s)
			final := w.final(sent)
			w.crashes(sent, func(at string, _ []string) { w.afterStatement(at, kind, sent, final, r) })
		})
	}
}

// afterStatement holds what a crash while a statement was taken left to the rules of
// TestACrashInAStatement.
func (w *world) afterStatement(at string, kind statement.Kind, sent []byte, final shimhost.Tree, r run) {
	w.t.Helper()
	fail := func(format string, args ...any) { w.t.Helper(); w.t.Errorf(at+": "+format, args...) }
	if half := w.halfWritten(w.now(), final); half != "" {
		fail("half written: %s", half)
	}
	// the script is the host's last, and above the mark that a reset sets
	if answer := w.send(w.again(r).sent); answer.Code != envelope.ExitOK {
		fail("a script answers %d: %s", answer.Code, answer.Stderr)
	}
	now, trust := w.now(), w.past
	if now[shimhost.State+"/statements/"+string(kind)] != nil {
		trust = final
	}
	for path, node := range trust {
		if strings.HasPrefix(path, shimhost.Etc+"/") && !same(now[path], node) {
			fail("%s is not that of the statement that is kept", path)
		}
	}
	if answer := w.send(sent); answer.Code != envelope.ExitOK {
		fail("sent again, it answers %d: %s", answer.Code, answer.Stderr)
	}
	now = w.now()
	for path, node := range final {
		if strings.HasPrefix(path, shimhost.Etc+"/") && !same(now[path], node) {
			fail("sent again, %s is not as it must be", path)
		}
	}
	if answer := w.send(w.again(r).sent); answer.Code != envelope.ExitOK {
		fail("after it a script answers %d: %s", answer.Code, answer.Stderr)
	}
	risen := w.mark()
	if answer := w.send(sent); answer.Code != envelope.ExitOK || w.mark() != risen {
		fail("sent a third time, it answers %d, and the mark went from %q to %q: %s", answer.Code, risen, w.mark(), answer.Stderr)
	}
}
