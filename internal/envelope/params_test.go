package envelope

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParamsRoundTrip(t *testing.T) {
	want := map[string]string{"KPSSH_B": "", "KPSSH_LONG": strings.Repeat("a", 131071-len("KPSSH_LONG=")), "KPSSH_A": "x=y z\t'\"$(id)", "KPSSH_VAR_clusterDNS": "10.0.0.10", "KPSSH_9": "é"}
	block, err := EncodeParams(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(block); got != "KPSSH_9=é\nKPSSH_A=x=y z\t'\"$(id)\nKPSSH_B=\nKPSSH_LONG="+want["KPSSH_LONG"]+"\nKPSSH_VAR_clusterDNS=10.0.0.10\n" {
		t.Fatalf("block %q", got)
	}
	got, err := DecodeParams(block)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestParamsRefuseNamesAndValuesThatSteerAShell(t *testing.T) {
	cases := map[string]struct{ name, value, want string }{
		"BASH_ENV":               {"BASH_ENV", "/tmp/x", "parameter name"},
		"PATH":                   {"PATH", "/tmp", "parameter name"},
		"the bare prefix":        {"KPSSH_", "x", "parameter name"},
		"a command in a name":    {"KPSSH_x;id", "x", "parameter name"},
		"a lower-case prefix":    {"kpssh_x", "x", "parameter name"},
		"a space before":         {" KPSSH_x", "x", "parameter name"},
		"a letter beyond ASCII":  {"KPSSH_é", "x", "parameter name"},
		"a dash":                 {"KPSSH_a-b", "x", "parameter name"},
		"an equals sign in name": {"KPSSH_a=b", "x", "parameter name"},
		"a line feed in a value": {"KPSSH_x", "a\nBASH_ENV=/tmp/x", "KPSSH_x: value holds"},
		"a CR in a value":        {"KPSSH_x", "a\r", "KPSSH_x: value holds"},
		"a NUL in a value":       {"KPSSH_x", "a\x00b", "KPSSH_x: value holds"},
		"too long to be passed":  {"KPSSH_x", strings.Repeat("a", 131072-len("KPSSH_x=")), "KPSSH_x: with its value"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := EncodeParams(map[string]string{c.name: c.value})
			wantCode(t, err, ExitParam, c.want)
			if strings.ContainsAny(c.name, "=") || strings.Contains(c.value, "\n") {
				return // these cannot be written as one line of a block
			}
			_, err = DecodeParams([]byte(c.name + "=" + c.value + "\n"))
			wantCode(t, err, ExitParam, c.want)
		})
	}
}

func TestDecodeParamsRefuses(t *testing.T) {
	cases := map[string]struct {
		block string
		code  ExitCode
		want  string
	}{
		"a name twice":          {"KPSSH_A=1\nKPSSH_A=1\n", ExitParam, "KPSSH_A: given twice"},
		"a line without equals": {"KPSSH_A\n", ExitParam, "without ="},
		"an empty line":         {"KPSSH_A=1\n\n", ExitParam, "without ="},
		"only a line feed":      {"\n", ExitParam, "without ="},
		"no final line feed":    {"KPSSH_A=1", ExitParam, "does not end"},
		"a block too long":      {"KPSSH_A=" + strings.Repeat("x", MaxParams), ExitEnvelope, "at most"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeParams([]byte(c.block))
			wantCode(t, err, c.code, c.want)
		})
	}
	if _, err := EncodeParams(map[string]string{"KPSSH_A": strings.Repeat("x", MaxParams)}); err == nil {
		t.Fatal("encoded a block that is too long")
	}
}

func TestParamErrorsNeverShowAValue(t *testing.T) {
	_, err := EncodeParams(map[string]string{"KPSSH_TOKEN": "s3cret\nx"})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("error %v", err)
	}
}

// FuzzDecodeParams: never panics; what is accepted comes back the same.
func FuzzDecodeParams(f *testing.F) {
	f.Add([]byte("KPSSH_A=1\nKPSSH_B=\n"))
	f.Add([]byte("PATH=1\n"))
	f.Fuzz(func(t *testing.T, block []byte) {
		params, err := DecodeParams(block)
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := EncodeParams(params)
		if err != nil || len(again) != len(block) {
			t.Fatalf("accepted %q, encoded %q, %v", block, again, err)
		}
		back, err := DecodeParams(again)
		if err != nil || !cmp.Equal(params, back) {
			t.Fatalf("came back as %v, %v", back, err)
		}
	})
}
