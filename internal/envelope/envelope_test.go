package envelope

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testRunID = RunID("0123456789abcdef0123456789abcdef")

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func joinText() string {
	return "kpssh-envelope: 1\nphase: join\nrun-id: " + string(testRunID) + "\nparams-b64: " + b64("KPSSH_A=1\n") +
		"\nsig-b64: " + b64("sig") + "\nscript-b64: " + b64("#!/bin/sh\n") + "\n"
}

func wantCode(t *testing.T, err error, code ExitCode, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error with code %d", err, code)
	}
	if e.Code != code || !strings.Contains(e.Error(), text) {
		t.Fatalf("got %q (code %d), want code %d and %q", e, e.Code, code, text)
	}
}

func TestEnvelopeRoundTrips(t *testing.T) {
	cases := map[string]Envelope{
		"a join with run-id":           {Phase: PhaseJoin, RunID: testRunID, Params: []byte("KPSSH_A=1\n"), Sig: []byte("s"), Script: []byte("x\x00{{")},
		"a leave with an empty script": {Phase: PhaseLeave, Params: []byte{}, Sig: []byte{}, Script: []byte{}},
		"upstream's probe":             {Phase: PhaseProbe},
		"an outcome":                   {Phase: PhaseOutcome, RunID: testRunID},
		"a statement":                  {Phase: PhaseStatement, Statement: []byte("st"), StatementSig: []byte("sig")},
		"the largest of each field": {
			Phase: PhaseInstall, Params: make([]byte, MaxParams), Sig: make([]byte, MaxSignature), Script: make([]byte, MaxScript),
		},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := want.Encode()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(&want, got) { // a diff of 1 MiB takes seconds
				t.Fatal("came back different")
			}
			again, err := got.Encode()
			if err != nil || !bytes.Equal(text, again) {
				t.Fatalf("encoding again differs: %v", err)
			}
		})
	}
}

func TestDecodeAcceptsAnyOrderAndNoFinalLineFeed(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(joinText(), "\n"), "\n")
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	got, err := Decode([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	text, err := got.Encode()
	if err != nil || string(text) != joinText() {
		t.Fatalf("got %q, %v", text, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	ok := joinText()
	big := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	drop := func(prefix string) string {
		var out []string
		for _, l := range strings.SplitAfter(ok, "\n") {
			if !strings.HasPrefix(l, prefix) {
				out = append(out, l)
			}
		}
		return strings.Join(out, "")
	}
	cases := map[string]struct {
		text string
		code ExitCode
		want string
	}{
		"nothing":                     {"", ExitEnvelope, "no known field"},
		"no version":                  {drop("kpssh-envelope"), ExitEnvelope, "kpssh-envelope: must be given"},
		"version 2":                   {strings.Replace(ok, ": 1\n", ": 2\n", 1), ExitEnvelope, "kpssh-envelope: must be given"},
		"no phase":                    {drop("phase"), ExitEnvelope, "phase: missing"},
		"no params":                   {drop("params-b64"), ExitEnvelope, "params-b64: missing"},
		"no signature":                {drop("sig-b64"), ExitEnvelope, "sig-b64: missing"},
		"no script":                   {drop("script-b64"), ExitEnvelope, "script-b64: missing"},
		"an unknown phase":            {strings.Replace(ok, "join", "jion", 1), ExitPhase, "unknown phase"},
		"a phase with a space":        {strings.Replace(ok, "join", "jo in", 1), ExitEnvelope, "phase: missing, or not"},
		"an empty phase":              {strings.Replace(ok, "join", "", 1), ExitEnvelope, "phase: missing, or not"},
		"phase in capitals":           {strings.Replace(ok, "join", "Join", 1), ExitPhase, "unknown phase"},
		"an unknown field":            {ok + "extra: 1\n", ExitEnvelope, "no known field"},
		"a field in capitals":         {strings.Replace(ok, "phase:", "Phase:", 1), ExitEnvelope, "no known field"},
		"a field without the space":   {strings.Replace(ok, "phase: ", "phase:", 1), ExitEnvelope, "no known field"},
		"phase twice":                 {ok + "phase: leave\n", ExitEnvelope, "phase: given twice"},
		"the same script twice":       {ok + "script-b64: " + b64("#!/bin/sh\n") + "\n", ExitEnvelope, "script-b64: given twice"},
		"an empty line":               {ok + "\n", ExitEnvelope, "no known field"},
		"NUL":                         {ok + "\x00", ExitEnvelope, "NUL"},
		"NUL before a line feed":      {strings.Replace(ok, "join\n", "join\x00\n", 1), ExitEnvelope, "NUL"},
		"CRLF":                        {strings.ReplaceAll(ok, "\n", "\r\n"), ExitEnvelope, "kpssh-envelope: must be given"},
		"CR in base64":                {strings.Replace(ok, b64("sig"), b64("sig")+"\r", 1), ExitEnvelope, "sig-b64: is not padded"},
		"base64 without padding":      {strings.Replace(ok, b64("KPSSH_A=1\n"), "S1BTU0hfQT0xCg", 1), ExitEnvelope, "params-b64: is not padded"},
		"base64 of the URL alphabet":  {strings.Replace(ok, b64("sig"), "_-_-", 1), ExitEnvelope, "sig-b64: is not padded"},
		"base64 with a space":         {strings.Replace(ok, b64("sig"), "c2 ln", 1), ExitEnvelope, "sig-b64: is not padded"},
		"base64 padded in the middle": {strings.Replace(ok, b64("sig"), "cw==c2ln", 1), ExitEnvelope, "sig-b64: is not padded"},
		"base64 with stray bits":      {strings.Replace(ok, b64("sig"), "cx==", 1), ExitEnvelope, "sig-b64: is not padded"},
		"a short run-id":              {strings.Replace(ok, string(testRunID), string(testRunID)[1:], 1), ExitEnvelope, "run-id: is not 32"},
		"a run-id in capitals":        {strings.Replace(ok, string(testRunID), strings.ToUpper(string(testRunID)), 1), ExitEnvelope, "run-id: is not 32"},
		"an empty run-id":             {strings.Replace(ok, string(testRunID), "", 1), ExitEnvelope, "run-id: is not 32"},
		"outcome without run-id":      {"kpssh-envelope: 1\nphase: outcome\n", ExitEnvelope, "run-id: missing"},
		"statement without signature": {"kpssh-envelope: 1\nphase: statement\nstatement-b64: c3Q=\n", ExitEnvelope, "statement-sig-b64: missing"},
		"a statement beside a join":   {ok + "statement-b64: c3Q=\n", ExitEnvelope, "not taken by phase join"},
		"a script too long":           {strings.Replace(ok, b64("#!/bin/sh\n"), big(MaxScript+1), 1), ExitEnvelope, "script-b64:"},
		"a signature too long":        {strings.Replace(ok, b64("sig"), big(MaxSignature+3), 1), ExitEnvelope, "sig-b64: more than"},
		"a signature one byte over":   {strings.Replace(ok, b64("sig"), big(MaxSignature+1), 1), ExitEnvelope, "sig-b64: 16385 bytes"},
		"params too long":             {strings.Replace(ok, b64("KPSSH_A=1\n"), big(MaxParams+3), 1), ExitEnvelope, "params-b64: more than"},
		"an envelope too long":        {ok + strings.Repeat("x", MaxEnvelope), ExitEnvelope, "envelope of more than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(c.text))
			wantCode(t, err, c.code, c.want)
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	cases := map[string]struct {
		e    Envelope
		code ExitCode
		want string
	}{
		"the zero envelope":      {Envelope{}, ExitEnvelope, "phase: missing"},
		"an unknown phase":       {Envelope{Phase: "x"}, ExitPhase, "unknown phase"},
		"a join without script":  {Envelope{Phase: PhaseJoin, Params: []byte{}, Sig: []byte{}}, ExitEnvelope, "script-b64: missing"},
		"a run-id of other form": {Envelope{Phase: PhaseProbe, RunID: "x"}, ExitEnvelope, "run-id"},
		"a script too long":      {Envelope{Phase: PhaseJoin, Params: []byte{}, Sig: []byte{}, Script: make([]byte, MaxScript+1)}, ExitEnvelope, "script-b64"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.e.Encode()
			wantCode(t, err, c.code, c.want)
		})
	}
}

// FuzzDecode: never panics; what is accepted comes back the same after encoding.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(joinText()))
	f.Add([]byte("kpssh-envelope: 1\nphase: probe"))
	f.Add([]byte("kpssh-envelope: 1\nphase: leave\nsig-b64: \nscript-b64: \nparams-b64: \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Decode(text)
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) || (typed.Code != ExitEnvelope && typed.Code != ExitPhase) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatalf("accepted but not encodable: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Fatal(diff)
		}
		if len(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")) != strings.Count(string(again), "\n") {
			t.Fatal("a line of the input is not in the output")
		}
	})
}
