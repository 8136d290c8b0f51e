package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(state OutcomeState, phase Phase) Outcome {
	return Outcome{RunID: testRunID, State: state, Phase: phase, Code: Unknown, Exit: Unknown, Bytes: Unknown, Cut: Unknown}
}

func TestOutcomeRoundTrips(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	cases := map[string]struct {
		o    Outcome
		line string
	}{
		"ended": {
			Outcome{RunID: testRunID, State: OutcomeEnded, Phase: PhaseJoin, Code: 10, Exit: 2, Bytes: 5, SHA256: sum, Cut: 1},
			"state=ended phase=join code=10 exit=2 bytes=5 sha256=" + sum + " cut=1",
		},
		"ended, the host was switched off": {open(OutcomeEnded, PhaseJoin), "state=ended phase=join code=- exit=- bytes=- sha256=- cut=-"},
		"running":                          {open(OutcomeRunning, PhaseLeave), "state=running phase=leave code=- exit=- bytes=- sha256=- cut=-"},
		"unknown":                          {open(OutcomeUnknown, ""), "state=unknown phase=- code=- exit=- bytes=- sha256=- cut=-"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := "kpssh-outcome: v1 run-id=" + string(testRunID) + " " + c.line
			if got := c.o.Line(); got != want+"\n" {
				t.Fatalf("line %q, want %q", got, want)
			}
			got, err := ParseOutcome(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.o, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestParseOutcomeRefuses(t *testing.T) {
	prefix := "kpssh-outcome: v1 run-id=" + string(testRunID) + " "
	sum := strings.Repeat("0f", 32)
	cases := map[string]string{
		"nothing":                  "",
		"a trailer":                strings.TrimSuffix(trailerFor("x").Line(), "\n"),
		"another state":            prefix + "state=done phase=join code=0 exit=0 bytes=5 sha256=" + sum + " cut=0",
		"running with a code":      prefix + "state=running phase=join code=0 exit=- bytes=- sha256=- cut=-",
		"unknown with a phase":     prefix + "state=unknown phase=join code=- exit=- bytes=- sha256=- cut=-",
		"an empty phase":           prefix + "state=ended phase= code=0 exit=0 bytes=5 sha256=" + sum + " cut=0",
		"an empty digest":          prefix + "state=ended phase=join code=0 exit=0 bytes=5 sha256= cut=0",
		"a short digest":           prefix + "state=ended phase=join code=0 exit=0 bytes=5 sha256=" + sum[1:] + " cut=0",
		"code 256":                 prefix + "state=ended phase=join code=256 exit=0 bytes=5 sha256=" + sum + " cut=0",
		"a negative code":          prefix + "state=ended phase=join code=-1 exit=0 bytes=5 sha256=" + sum + " cut=0",
		"cut 2":                    prefix + "state=ended phase=join code=0 exit=0 bytes=5 sha256=" + sum + " cut=2",
		"bytes after the last one": prefix + "state=ended phase=join code=0 exit=0 bytes=5 sha256=" + sum + " cut=0 ",
	}
	for name, line := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOutcome(line)
			wantCode(t, err, ExitEnvelope, "kpssh-outcome")
		})
	}
}

func FuzzParseOutcome(f *testing.F) {
	f.Add(strings.TrimSuffix(open(OutcomeRunning, PhaseJoin).Line(), "\n"))
	f.Fuzz(func(t *testing.T, line string) {
		o, err := ParseOutcome(line)
		if err == nil && o.Line() != line+"\n" {
			t.Fatalf("accepted %q, writes %q", line, o.Line())
		}
	})
}

func TestExitCodes(t *testing.T) {
	for code := range 24 {
		known := ExitCode(code).Known()
		wantKnown := code <= 5 || (code >= 10 && code <= 18) || code >= 20
		if known != wantKnown {
			t.Errorf("code %d known %t", code, known)
		}
		wantRefused := wantKnown && code != 0 && code != 1 && (code < 10 || code > 12)
		if got := ExitCode(code).Refused(); got != wantRefused {
			t.Errorf("code %d refused %t", code, got)
		}
		if ExitCode(code).String() == "" {
			t.Errorf("code %d has no name", code)
		}
	}
	if ExitCode(255).Known() || !strings.Contains(ExitCode(255).String(), "255") {
		t.Error("255 is not a code of the shim")
	}
}

func TestNewRunID(t *testing.T) {
	id, err := NewRunID(strings.NewReader("0123456789abcdef"))
	if err != nil || id != "30313233343536373839616263646566" || !id.Valid() {
		t.Fatalf("run-id %q, %v", id, err)
	}
	if _, err := NewRunID(strings.NewReader("short")); err == nil {
		t.Fatal("a run-id without enough random bytes")
	}
}
