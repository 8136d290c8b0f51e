//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

var shared lab.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestStory plays the demonstration, whose steps fail on any answer but theirs, and shows it. Nothing of it is left when it
// is taken down, as by another process, with its kubelet running.
func TestStory(t *testing.T) {
	l := newLab(t)
	s := playIn(t, l)
	kubelet := s.hostC.Must(t, "cat /run/kubelet.pid /run/containerd.pid")
	netns := lab.NetNS(t, s.hostC.PID())
	if up := lab.InNetNS(t, netns); len(up) < 4 || len(lab.Cgroups(t, l.ID())) == 0 { // sshd, kubelet, containerd and the host's first
		t.Errorf("kubelet and containerd are %q, the host's processes %q", kubelet, up)
	}
	if err := errors.Join(l.Detach(), lab.Down(l.StateDir())); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(lab.InNetNS(t, netns), lab.Cgroups(t, l.ID())); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := os.Stat(l.StateDir()); !os.IsNotExist(err) {
		t.Errorf("the state directory: %v", err)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), l.StateDir()) {
		t.Errorf("mounts (%v): %s", err, mounts)
	}
}

// TestStoryInAClusterOfOnesOwn plays it in a cluster that another lab started.
func TestStoryInAClusterOfOnesOwn(t *testing.T) {
	theirs := newLab(t)
	cluster, err := theirs.StartControlPlane(t.Context(), lab.ControlPlaneOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", cluster.Kubeconfig)
	s := playIn(t, newLab(t))
	if !s.cluster.External {
		t.Error("the story has started a control plane of its own")
	}
	if s.hostC != nil || s.nodeSteps() != nil {
		t.Error("it had a kubelet join somebody else's cluster")
	}
}

func newLab(t *testing.T) *lab.Lab {
	t.Helper()
	lab.NeedLab(t)
	l, err := lab.New(t.Context(), lab.Options{Helper: shared.Helper()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the ends of the logs:\n%s", l.Logs(20))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func playIn(t *testing.T, l *lab.Lab) *story {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out bytes.Buffer
	s := &story{lab: l, dir: filepath.Join(l.StateDir(), "story"), out: &out}
	if err := s.play(ctx); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, step := range s.steps() {
		if !strings.Contains(out.String(), step.title) {
			t.Errorf("the output does not show the step %q", step.title)
		}
	}
	t.Logf("\n%s", &out)
	return s
}

// TestAWrongAnswerFails shows that a step cannot pass by being refused for another reason.
func TestAWrongAnswerFails(t *testing.T) {
	for name, next := range map[string]step{
		"another answer":     {want: "Unsigned", fails: true, try: says("TemplateFound", true)},
		"admitted":           {want: "Unsigned", fails: true, try: says("Unsigned", false)},
		"refused unexpected": {want: "applied", try: says("applied", true)},
	} {
		s := &story{out: new(bytes.Buffer)}
		if err := s.tell(t.Context(), next); err == nil {
			t.Errorf("%s: the step passed", name)
		}
	}
}

func says(text string, refused bool) func(context.Context) (answer, bool, error) {
	return func(context.Context) (answer, bool, error) { return answer{said: text}, refused, nil }
}

// cutter is where the story is told, until it comes to that word.
type cutter struct {
	bytes.Buffer
	word string
	cut  func()
}

func (c *cutter) Write(text []byte) (int, error) {
	if c.word != "" && bytes.Contains(text, []byte(c.word)) {
		c.cut()
	}
	return c.Buffer.Write(text)
}

// TestCtrlCEndsTheStoryCalmly: whoever ends it sees no log, and nothing is left. Near the miss a story that fails shows them.
func TestCtrlCEndsTheStoryCalmly(t *testing.T) {
	lab.NeedLab(t)
	for name, c := range map[string]struct {
		word, kubeconfig string
		code             int
		says             string
	}{
		"while it starts": {"Starting etcd", "", 130, "demo: interrupted; all that"},
		"in a step":       {"Signed, it is admitted", "", 130, "demo: interrupted; all that"},
		"it fails":        {"", "/nowhere", 1, "demo: error: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.kubeconfig)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dir := filepath.Join(t.TempDir(), "state")
			out, said := &cutter{word: c.word, cut: cancel}, new(bytes.Buffer)
			err := up(ctx, shared.Helper(), dir, out)
			if code := report(err, said); code != c.code || !strings.HasPrefix(said.String(), c.says) || strings.Count(said.String(), "\n") != 1 {
				t.Errorf("exit %d: %s", code, said)
			}
			if strings.Contains(out.String(), "--- ") {
				t.Errorf("logs are shown:\n%s", out)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the state directory: %v", err)
			}
		})
	}
}

// TestWhatCouldNotBeTakenDownIsAFailure: the calm word would hide it.
func TestWhatCouldNotBeTakenDownIsAFailure(t *testing.T) {
	var said bytes.Buffer
	if code := report(errors.Join(errInterrupted, errors.New("a mount stays")), &said); code != 1 || !strings.Contains(said.String(), "a mount stays") {
		t.Errorf("exit %d: %s", code, &said)
	}
}
