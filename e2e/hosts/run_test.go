//go:build linux

package hosts

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// waiting is a body that says who runs it and waits to be let go.
const waiting = "echo $PPID >/root/shim; echo $$ >/root/script; while [ ! -e /root/go ]; do sleep 0.05; done\n"

// start sends an order whose script waits, and returns when it runs.
func (w *world) start(t *testing.T, o order) <-chan answer {
	t.Helper()
	w.root(t, "rm -f /root/go /root/shim /root/script")
	done := make(chan answer, 1)
	go func() { done <- w.send(t, o.text()) }()
	testkit.Eventually(t, time.Minute, "script", func() bool { return w.read(t, "/root/script") != "" })
	w.settled(t)
	return done
}

// settled waits until nothing of the host has changed for a while: all that keeps a script's output is there.
func (w *world) settled(t *testing.T) {
	t.Helper()
	last, since := w.image(t), time.Now()
	testkit.Eventually(t, time.Minute, "quiet on the host", func() bool {
		if now := w.image(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
}

// TestOneRunAtATime: whatever the second one is, the first goes on.
func TestOneRunAtATime(t *testing.T) {
	w := newWorld(t)
	first, second := w.join(t, waiting), w.join(t, "")
	first.runID = newRunID(t)
	done := w.start(t, first)
	w.refuses(t, second.text(), 12, "another run is active")
	leave := w.leave(t, "")
	w.refuses(t, leave.text(), 12, "another run is active")
	for name, text := range map[string]string{
		"a probe":     "kpssh-envelope: 1\nphase: probe\n",
		"an outcome":  "kpssh-envelope: 1\nphase: outcome\nrun-id: " + string(first.runID) + "\n",
		"a proof":     proveText("KPSSH_NONCE=" + nonce + "\nKPSSH_RUN_UID=" + runUID + "\n"),
		"a statement": w.signed(t, w.floor(1)).text(),
	} {
		if got := w.send(t, text); got.code != 0 {
			t.Errorf("%s meanwhile answered %+v", name, got)
		}
	}
	w.root(t, "touch /root/go")
	if got := <-done; got.code != 0 {
		t.Errorf("the first answered %+v", got)
	}
	w.runs(t, second)
}

// TestOneEnvelopeManyTimesAtOnce runs once, and each sender learns that.
func TestOneEnvelopeManyTimesAtOnce(t *testing.T) {
	w := newWorld(t)
	for name, id := range map[string]envelope.RunID{"with a run-id": newRunID(t), "without": ""} {
		w.reset(t, nil)
		o := w.join(t, "sleep 3\n")
		o.runID = id
		answers := make(chan answer)
		for range 6 {
			go func() { answers <- w.send(t, o.text()) }()
		}
		codes := map[int]int{}
		for range 6 {
			codes[(<-answers).code]++
		}
		if codes[0] != 1 || codes[12] != 5 || w.read(t, ranFile) != o.mark+"\n" {
			t.Errorf("%s: answers %v, and what ran left %q", name, codes, w.read(t, ranFile))
		}
	}
}

// TestADaemonDoesNotHoldTheHost: left in the background, in a session of its own, with the pipes open or not.
func TestADaemonDoesNotHoldTheHost(t *testing.T) {
	w := newWorld(t)
	seconds := 300
	for name, body := range map[string]string{
		"in the group":              "sleep N >/dev/null 2>&1 &\n",
		"with its output open":      "sleep N &\n",
		"in a session of its own":   "setsid -f sleep N </dev/null >/dev/null 2>&1\n",
		"the same, output open":     "setsid -f sleep N\n",
		"that ignores every signal": "(trap '' HUP INT TERM; exec sleep N) &\n",
		"with every descriptor":     "for fd in /proc/self/fd/*; do eval \"exec ${fd##*/}>&-\" || :; done 2>/dev/null\nsleep N &\n",
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			seconds++ // by which the daemon is told from the others
			daemon, began := fmt.Sprintf("sleep %d", seconds), time.Now()
			w.runs(t, w.join(t, strings.ReplaceAll(body, "sleep N", daemon)))
			w.runs(t, w.leave(t, ""))
			if waited := time.Since(began); waited > 30*time.Second {
				t.Errorf("two runs took %v", waited)
			}
			if w.root(t, "pgrep -fxc '"+daemon+"' || :") != "1\n" {
				t.Error("the daemon is gone")
			}
		})
	}
}

// TestAKilledShimDoesNotFreeTheHost: its script is still there, until it ends.
func TestAKilledShimDoesNotFreeTheHost(t *testing.T) {
	w := newWorld(t)
	first, second := w.join(t, waiting), w.leave(t, "")
	first.runID = newRunID(t)
	done := w.start(t, first)
	w.root(t, "kill -KILL $(cat /root/shim)")
	w.refuses(t, second.text(), 12, "shim that was killed")
	if got := w.outcome(t, first.runID); got.State != envelope.OutcomeRunning {
		t.Errorf("outcome %+v, want running", got)
	}
	w.root(t, "touch /root/go")
	testkit.Eventually(t, time.Minute, "end of the script", func() bool { return w.root(t, "kill -0 $(cat /root/script) 2>/dev/null || echo over") == "over\n" })
	w.runs(t, second)
	if got := w.outcome(t, first.runID); got.State != envelope.OutcomeEnded || got.Code != envelope.Unknown {
		t.Errorf("outcome %+v, want ended with an unknown code", got)
	}
	before := w.image(t)
	if got := w.send(t, first.text()); got.code != 1 {
		t.Errorf("sent again it answered %+v, want 1", got)
	}
	w.unchanged(t, before)
	if got := <-done; got.code == 0 {
		t.Errorf("the killed run answered %+v", got)
	}
}

// TestACallerThatHangsUpDoesNotStopTheScript, nor make it run twice.
func TestACallerThatHangsUpDoesNotStopTheScript(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, waiting+"echo finished >>"+ranFile+"\nexit 7\n")
	o.runID = newRunID(t)
	caller := *w
	caller.conn = w.dialAs(t, "kpssh")
	w.root(t, "rm -f /root/go")
	s, err := caller.conn.NewSession()
	must(t, err)
	s.Stdin = strings.NewReader(o.text())
	must(t, s.Shell())
	testkit.Eventually(t, time.Minute, "script", func() bool { return w.read(t, "/root/script") != "" })
	must(t, caller.conn.Close())
	w.root(t, "touch /root/go")
	testkit.Eventually(t, time.Minute, "recorded end", func() bool { return w.outcome(t, o.runID).State == envelope.OutcomeEnded })
	if got := w.outcome(t, o.runID); got.Code != 10 || got.Exit != 7 {
		t.Errorf("outcome %+v, want 10 and 7", got)
	}
	before := w.image(t)
	if got := w.send(t, o.text()); got.code != 10 || !strings.Contains(got.stderr, "has been run before") {
		t.Errorf("sent again it answered %+v, want the recorded 10", got)
	}
	w.unchanged(t, before)
	if ran := w.read(t, ranFile); ran != o.mark+"\nfinished\n" {
		t.Errorf("what ran left %q", ran)
	}
}

func (w *world) outcome(t *testing.T, id envelope.RunID) envelope.Outcome {
	t.Helper()
	got := w.send(t, "kpssh-envelope: 1\nphase: outcome\nrun-id: "+string(id)+"\n")
	if got.code != 0 {
		t.Fatalf("outcome answered %+v", got)
	}
	o, err := envelope.ParseOutcome(strings.TrimSuffix(got.stdout, "\n"))
	must(t, err)
	return o
}

// TestAScriptsOwnStatusIsNotTheShims: 2 would read as a rejected signature, 124 as a time limit, 255 as ssh's own.
func TestAScriptsOwnStatusIsNotTheShims(t *testing.T) {
	w := newWorld(t)
	for _, status := range []int{1, 2, 3, 4, 12, 18, 22, 124, 137, 255} {
		o := w.join(t, fmt.Sprintf("exit %d\n", status))
		if got := w.send(t, o.text()); got.code != 10 || got.stderr != fmt.Sprintf("kpssh-shim: script exited %d\n", status) {
			t.Errorf("exit %d: answered %+v, want 10", status, got)
		}
	}
	w.runs(t, w.join(t, "exit 0\n"))
}

// TestAForgedTrailerIsOutput: a script that knows its run-id prints the trailer of a better run.
func TestAForgedTrailerIsOutput(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	o.runID = newRunID(t)
	forged := envelope.Trailer{RunID: o.runID, Phase: "join", SHA256: sha256.Sum256(nil)}
	o.script += "printf '%s' '" + forged.Line() + "'; exit 3\n"
	o.sign(t, w.alice)
	got := w.send(t, o.text())
	if got.code != 10 {
		t.Fatalf("answered %+v, want 10", got)
	}
	reader := envelope.NewTrailerReader(strings.NewReader(got.stdout), o.runID, "join")
	body, err := io.ReadAll(reader)
	must(t, err)
	trailer, err := reader.Trailer()
	must(t, err)
	if string(body) != forged.Line() || trailer.Exit != 3 || trailer.Cut {
		t.Errorf("output %q, trailer %+v", body, trailer)
	}
}

// TestWhatRunsIsWhatWasSigned: a NUL is refused, and every other byte arrives.
func TestWhatRunsIsWhatWasSigned(t *testing.T) {
	w := newWorld(t)
	w.reset(t, map[string]string{
		"allowed_signers": "kpssh,join@* namespaces=\"kpssh\" " + w.alice.Line + "\n", "shim.conf": "warrant=optional\nclass=bm\n",
	})
	for name, text := range map[string]string{"a NUL": "echo a\x00; touch /tmp/evil\n", "a NUL at the end": "true\n\x00", "a NUL in a comment": "# \x00\n", "a template": "echo {{ .Name }}\n"} {
		t.Run(name, func(t *testing.T) {
			w.refuses(t, w.join(t, text).text(), 14, "script: line ")
			bare := order{phase: "join", script: text}
			bare.sign(t, w.alice)
			w.refuses(t, bare.text(), 14, "script: line ")
		})
	}
	for name, text := range map[string]string{"CR LF": "# a\r\n", "controls": "# \x01\x7f\x1b\n", "no UTF-8": "# \xff\xfe\n", "no line feed at the end": "true", "much": strings.Repeat("# 0123456789\n", 50000)} {
		t.Run(name, func(t *testing.T) {
			o := w.join(t, "sha256sum <\"$0\"\nexit 0\n"+text)
			want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(o.script)))
			if got := w.runs(t, o); got.stdout != want {
				t.Errorf("run bytes have digest %q, want %q", got.stdout, want)
			}
		})
	}
}

// TestAGibibyteOfOutputIsCountedAndDropped.
func TestAGibibyteOfOutputIsCountedAndDropped(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "head -c 1073741824 /dev/zero\n")
	o.runID = newRunID(t)
	got := w.runs(t, o)
	reader := envelope.NewTrailerReader(strings.NewReader(got.stdout), o.runID, "join")
	n, err := io.Copy(io.Discard, reader)
	must(t, err)
	trailer, err := reader.Trailer()
	must(t, err)
	if n != 16<<20 || trailer.Bytes != n || !trailer.Cut || trailer.Exit != 0 {
		t.Errorf("%d bytes, trailer %+v", n, trailer)
	}
	w.runs(t, w.leave(t, ""))
}

// TestAFullDiskFailsClosed: a script fills the disk that holds the state. Nothing runs until there is room again, not
// even what needs no room but for its record.
func TestAFullDiskFailsClosed(t *testing.T) {
	w := newWorld(t)
	w.root(t, "mount -t tmpfs -o size=256k,mode=700 small "+stateDir)
	known, next := w.leave(t, ""), w.leave(t, "")
	w.runs(t, known)
	filling := w.join(t, "head -c 1048576 /dev/zero >"+stateDir+"/fill || :\n")
	filling.runID = newRunID(t)
	if got := w.send(t, filling.text()); got.code != 0 {
		t.Errorf("the script that filled the disk: answered %+v", got)
	}
	w.root(t, "head -c 1048576 /dev/zero >"+stateDir+"/rest 2>/dev/null || :") // what the run's end gave back
	recorded := known
	recorded.runID, next.runID = newRunID(t), newRunID(t)
	before := w.read(t, ranFile)
	for name, c := range map[string]struct {
		order
		says string
	}{
		"a known script": {known, "/running cannot be written"}, "a known one to be recorded": {recorded, "/runs cannot be written"},
		"a new one": {next, stateDir},
	} {
		got := w.send(t, c.text())
		if got.code != 22 || !strings.Contains(got.stderr, c.says) || w.read(t, ranFile) != before {
			t.Errorf("%s on a full disk: answered %+v, want 22", name, got)
		}
	}
	w.root(t, "rm "+stateDir+"/fill "+stateDir+"/rest")
	w.runs(t, next)
	w.runs(t, known)
}

// TestAScriptThatIgnoresTermIsKilled after its ten seconds, with its whole group.
func TestAScriptThatIgnoresTermIsKilled(t *testing.T) {
	w := newWorld(t)
	o := w.limited(t, 1, "trap '' TERM HUP INT\n(while :; do sleep 0.1; done) &\necho $! >/root/member\nwhile :; do sleep 0.1; done\n")
	o.runID = newRunID(t)
	began := time.Now()
	got := w.send(t, o.text())
	if got.code != 11 || !strings.Contains(got.stderr, "script stopped after its 1 s") {
		t.Errorf("answered %+v, want 11", got)
	}
	if took := time.Since(began); took < 10*time.Second || took > 40*time.Second {
		t.Errorf("it took %v, want 11 s", took)
	}
	if w.root(t, "kill -0 $(cat /root/member) 2>/dev/null || echo gone") != "gone\n" {
		t.Error("a member of the group is alive")
	}
	if got := w.outcome(t, o.runID); got.Code != 11 || got.Exit != 137 {
		t.Errorf("outcome %+v, want 11 and 137", got)
	}
	w.runs(t, w.leave(t, ""))
}
