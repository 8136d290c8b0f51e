package delivery

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/relay/fakesshd"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

const runID = envelope.RunID("0123456789abcdef0123456789abcdef")

func limits() transport.Limits {
	l := transport.DefaultLimits()
	l.Run, l.Drain, l.Output = 20*time.Second, 100*time.Millisecond, 4<<20
	return l
}

// shim plays a shim: it must be given a good envelope.
type shim func(s *fakesshd.Session, e *envelope.Envelope) int

func host(t *testing.T, play shim) (transport.Target, *fakesshd.Server) {
	t.Helper()
	login, pem := fakesshd.Key(t)
	hostKey, _ := fakesshd.Key(t)
	key, err := transport.ParseLoginKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := transport.ParsePin(fakesshd.PinText(hostKey))
	if err != nil {
		t.Fatal(err)
	}
	server := fakesshd.Start(t, login.PublicKey(), func(s *fakesshd.Session) int {
		text, err := io.ReadAll(s.Stdin)
		if err != nil {
			return 1
		}
		e, err := envelope.Decode(text)
		if err != nil {
			fmt.Fprintf(s.Stderr, "kpssh-shim: %v\n", err)
			return 4
		}
		return play(s, e)
	}, fakesshd.Options{}, hostKey)
	return transport.Target{Address: server.Addr, User: "kpssh", Login: key, Pin: pin, Command: "/opt/kpssh/kpssh-shim"}, server
}

func order(target transport.Target) Order {
	return Order{
		Target: target, Limits: limits(), Secrets: []string{"t0ps3cret"},
		Envelope: envelope.Envelope{Phase: envelope.PhaseJoin, RunID: runID, Params: []byte("KPSSH_A=1\n"), Sig: []byte("s"), Script: []byte("#!/bin/sh\n")},
	}
}

func trailer(out string, exit int) envelope.Trailer {
	return envelope.Trailer{RunID: runID, Phase: envelope.PhaseJoin, Exit: exit, Bytes: int64(len(out)), SHA256: sha256.Sum256([]byte(out))}
}

func answer(out string, tr string, errs string, code int) shim {
	return func(s *fakesshd.Session, _ *envelope.Envelope) int {
		fmt.Fprint(s.Stdout, out+tr)
		fmt.Fprint(s.Stderr, errs)
		return code
	}
}

func TestDeliverTellsHowARunEnded(t *testing.T) {
	cut := trailer("out\n", 0)
	cut.Cut = true
	foreign := trailer("out\n", 0)
	foreign.RunID = "ffffffffffffffffffffffffffffffff"
	record := envelope.Outcome{RunID: runID, State: envelope.OutcomeEnded, Phase: envelope.PhaseJoin, Code: 10, Exit: 3, Bytes: envelope.Unknown, Cut: envelope.Unknown}
	elsewhere := record
	elsewhere.Phase = envelope.PhaseLeave
	unknown := envelope.Unknown
	cases := map[string]struct {
		play       shim
		result     Result
		shim, exit int
		trailer    TrailerState
		message    string
	}{
		"success":                            {answer("out\n", trailer("out\n", 0).Line(), "", 0), Succeeded, 0, 0, Whole, "exited 0"},
		"success, output cut by the host":    {answer("out\n", cut.Line(), "", 0), Succeeded, 0, 0, Truncated, "exited 0"},
		"success of upstream's shim":         {answer("out\n", "", "", 0), Succeeded, 0, 0, None, "exited 0"},
		"a script that fails":                {answer("", trailer("", 7).Line(), "kpssh-shim: script exited 7\n", 10), ScriptFailed, 10, 7, Whole, "the script exited 7"},
		"a script that exits 2":              {answer("", trailer("", 2).Line(), "kpssh-shim: script exited 2\n", 10), ScriptFailed, 10, 2, Whole, "the script exited 2"},
		"a script that exits 124":            {answer("", trailer("", 124).Line(), "kpssh-shim: script exited 124\n", 10), ScriptFailed, 10, 124, Whole, "the script exited 124"},
		"a failure at upstream's shim":       {answer("", "", "kpssh-shim: script exited 9\nkpssh-shim: script exited 7\n", 10), ScriptFailed, 10, 7, None, "the script exited 7"},
		"a failure without the line":         {answer("", "", "script exited 7\n", 10), ScriptFailed, 10, unknown, None, "exit code 10: script failed"},
		"a timeout":                          {answer("", trailer("", 143).Line(), "", 11), TimedOut, 11, 143, Whole, "time limit"},
		"a timeout with status 0":            {answer("", trailer("", 0).Line(), "", 11), TimedOut, 11, 0, Whole, "time limit"},
		"busy":                               {answer("", "", "kpssh-shim: another run is active\n", 12), Busy, 12, unknown, None, "another run is active"},
		"a trailer of another run":           {answer("out\n", foreign.Line(), "", 0), Succeeded, 0, 0, None, "exited 0"},
		"a trailer in the middle":            {answer(trailer("", 0).Line(), "more\n", "", 0), Succeeded, 0, 0, None, "exited 0"},
		"a forged trailer, the script fails": {answer("", trailer("", 0).Line(), "kpssh-shim: script exited 7\n", 10), Cut, 10, 0, Whole, "contradict"},
		"success, and the trailer says 7":    {answer("", trailer("", 7).Line(), "", 0), Cut, 0, 7, Whole, "contradict"},
		"refused, and a script that ended":   {answer("", trailer("", 7).Line(), "", 2), Cut, 2, 7, Whole, "contradict"},
		"busy, and a script that ended":      {answer("", trailer("", 7).Line(), "", 12), Cut, 12, 7, Whole, "contradict"},
		"a known run-id, another phase":      {answer(elsewhere.Line(), "", "", 10), Cut, 10, 3, None, "contradict"},
		"a known run-id, another end":        {answer(record.Line(), "", "", 0), Cut, 0, 3, None, "contradict"},
		"a run-id that the host knows":       {answer(record.Line(), "", "", 10), ScriptFailed, 10, 3, None, "the script exited 3"},
		"internal error":                     {answer("", "", "", 1), Cut, 1, unknown, None, "internal error"},
		"no shim":                            {answer("", "", "sh: not found\n", 127), Cut, 127, unknown, None, "which no shim gives"},
		"255":                                {answer("", "", "", 255), Cut, 255, unknown, None, "which no shim gives"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target, _ := host(t, c.play)
			got, err := Deliver(t.Context(), order(target), func() error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if got.Result != c.result || got.ShimExit != c.shim || got.ScriptExit != c.exit || got.Trailer != c.trailer || !strings.Contains(got.Message, c.message) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestDeliverMapsEveryExitCode(t *testing.T) {
	for code := range 24 {
		want := Refused
		switch code {
		case 0:
			want = Succeeded
		case 10:
			want = ScriptFailed
		case 11:
			want = TimedOut
		case 12:
			want = Busy
		case 1, 6, 7, 8, 9, 19:
			want = Cut
		}
		target, _ := host(t, answer("", "", "", code))
		got, err := Deliver(t.Context(), order(target), func() error { return nil })
		if err != nil || got.Result != want || got.ShimExit != code {
			t.Errorf("exit code %d: %+v, %v, want %s", code, got, err, want)
		}
		says := fmt.Sprintf("exit code %d: %s", code, envelope.ExitCode(code))
		if r, refused := envelope.ExitCode(code).Refusal(); refused {
			says = fmt.Sprintf("the host refused the run with %s; at fault: %s; next: %s", says, r.Fault, r.Next)
		} else if strings.Contains(got.Message, "at fault") {
			t.Errorf("exit code %d refuses nothing: %q", code, got.Message)
		}
		if want == Refused && got.Message != says {
			t.Errorf("exit code %d: %q, want %q", code, got.Message, says)
		}
	}
}

func TestDeliverAfterACut(t *testing.T) {
	target, _ := host(t, func(s *fakesshd.Session, _ *envelope.Envelope) int {
		fmt.Fprint(s.Stdout, "half"+trailer("half", 0).Line())
		s.Cut()
		return fakesshd.NoExit
	})
	got, err := Deliver(t.Context(), order(target), func() error { return nil })
	if err != nil || got.Result != Cut || got.Trailer != None || got.ShimExit != envelope.Unknown {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestDeliverSendsNothingWithoutCommit(t *testing.T) {
	target, server := host(t, answer("", "", "", 0))
	refused := errors.New("conflict")
	if _, err := Deliver(t.Context(), order(target), func() error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	bad := order(target)
	bad.Envelope.Script = nil
	if _, err := Deliver(t.Context(), bad, func() error { return nil }); err == nil {
		t.Fatal("an order without a script was sent")
	}
	if server.Sessions() != 0 {
		t.Fatalf("%d commands", server.Sessions())
	}
}

func TestDeliverShowsNoSecret(t *testing.T) {
	out := strings.Repeat("x", 100000) + " token t0ps3cret\n"
	target, _ := host(t, answer(out, trailer(out, 0).Line(), "+ kubeadm --token t0ps3cret\n", 0))
	got, err := Deliver(t.Context(), order(target), func() error { return nil })
	if err != nil || strings.Contains(got.Transcript, "t0ps3cret") || strings.Count(got.Transcript, "[redacted]") != 2 {
		t.Fatalf("transcript %q, %v", got.Transcript, err)
	}
	if strings.Contains(got.Transcript, "kpssh-trailer") || got.Trailer != Whole {
		t.Fatalf("the trailer shows, or was not taken: %s", got.Trailer)
	}
}

func TestRecall(t *testing.T) {
	line := func(state envelope.OutcomeState, phase envelope.Phase, code, exit int) string {
		return envelope.Outcome{RunID: runID, State: state, Phase: phase, Code: code, Exit: exit, Bytes: envelope.Unknown, Cut: envelope.Unknown}.Line()
	}
	unknown := envelope.Unknown
	foreign := strings.Replace(line(envelope.OutcomeUnknown, "", unknown, unknown), string(runID), "ffffffffffffffffffffffffffffffff", 1)
	cases := map[string]struct {
		out    string
		code   int
		memory Memory
		result Result
		text   string
	}{
		"ended well":                    {line(envelope.OutcomeEnded, "join", 0, 0), 0, Ended, Succeeded, "as the host recorded"},
		"ended badly":                   {line(envelope.OutcomeEnded, "join", 10, 2), 0, Ended, ScriptFailed, "the script exited 2"},
		"ran into its time":             {line(envelope.OutcomeEnded, "join", 11, 143), 0, Ended, TimedOut, "time limit"},
		"the end is lost":               {line(envelope.OutcomeEnded, "join", unknown, unknown), 0, Lost, Cut, "its end is lost"},
		"an end that no run has":        {line(envelope.OutcomeEnded, "join", 12, unknown), 0, Lost, Cut, "which no run ends with"},
		"running":                       {line(envelope.OutcomeRunning, "join", unknown, unknown), 0, Running, Cut, "is running"},
		"never seen":                    {line(envelope.OutcomeUnknown, "", unknown, unknown), 0, NeverSeen, Cut, "never started"},
		"another phase":                 {line(envelope.OutcomeEnded, "leave", 0, 0), 0, Lost, Cut, "for phase leave"},
		"another run's record":          {foreign, 0, Lost, Cut, "unknown"},
		"a record with more after it":   {line(envelope.OutcomeUnknown, "", unknown, unknown) + "x\n", 0, Lost, Cut, "unknown"},
		"nothing":                       {"", 0, Lost, Cut, "unknown"},
		"upstream's shim":               {"", 5, Lost, Cut, "keeps no run records"},
		"a host that lost its state":    {"", 22, Lost, Cut, "state missing"},
		"a record and a bad exit code":  {line(envelope.OutcomeUnknown, "", unknown, unknown), 4, Lost, Cut, "malformed envelope"},
		"an internal error, ask again":  {"", 1, NotAsked, Cut, "internal error"},
		"a command that is not a shim":  {"", 127, Lost, Refused, "which no shim gives"},
		"much output instead of a line": {strings.Repeat("x\n", 1<<16), 0, Lost, Cut, "unknown"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target, _ := host(t, func(s *fakesshd.Session, e *envelope.Envelope) int {
				if e.Phase != envelope.PhaseOutcome || e.RunID != runID {
					return 4
				}
				fmt.Fprint(s.Stdout, c.out)
				return c.code
			})
			memory, r := Recall(t.Context(), target, limits(), runID, envelope.PhaseJoin)
			if memory != c.memory || r.Result != c.result || !strings.Contains(r.Message, c.text) {
				t.Fatalf("got %d, %+v", memory, r)
			}
		})
	}
}

func TestRecallOfAHostThatCannotBeReached(t *testing.T) {
	target, _ := host(t, answer("", "", "", 0))
	target.Address = fakesshd.Silent(t)
	l := limits()
	l.Handshake = 100 * time.Millisecond
	memory, r := Recall(t.Context(), target, l, runID, envelope.PhaseJoin)
	if memory != NotAsked || r.Result != Unreachable {
		t.Fatalf("got %d, %+v", memory, r)
	}
	if memory, _ := Recall(t.Context(), target, l, "x", envelope.PhaseJoin); memory != Lost {
		t.Fatalf("a run-id of another form: %d", memory)
	}
}
