package envelope

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// maxAdvice keeps an advice within a condition's message (1024 characters), beside what stands before it.
const maxAdvice = 400

// Each code that refuses says whose fault it is and names a command; no other does.
func TestARefusalSaysWhoseFaultItIs(t *testing.T) {
	want := map[ExitCode]struct {
		fault Fault
		names string
	}{
		2:  {FaultOfEither, "`hostwarrant host check`"},
		3:  {FaultOfEither, "`hostwarrant inspect`"},
		4:  {FaultOfHost, "`hostwarrant host check`"},
		5:  {FaultOfHost, "`hostwarrant host provision`"},
		13: {FaultOfProfile, "`hostwarrant sign`"},
		14: {FaultOfProfile, "`hostwarrant lint`"},
		15: {FaultOfEither, "`hostwarrant inspect`"},
		16: {FaultOfProfile, "`hostwarrant sign`"},
		17: {FaultOfEither, "kubectl get hoststate"},
		18: {FaultOfEither, "`hostwarrant fleet`"},
		20: {FaultOfProfile, "`hostwarrant fleet`"},
		21: {FaultOfProfile, "`hostwarrant sign --serial`"},
		22: {FaultOfEither, "`hostwarrant host repair`"},
		23: {FaultOfHost, "`hostwarrant host check`"},
	}
	for code := ExitCode(-1); code <= 256; code++ {
		got, refused := code.Refusal()
		w, should := want[code]
		if refused != should || got.Fault != w.fault || !strings.Contains(got.Next, w.names) || len(got.Next) > maxAdvice {
			t.Errorf("exit code %d: %t, %+v; want %t, %+v", int(code), refused, got, should, w)
		}
	}
}

// The page for people has the same.
func TestThePageSaysWhoseFaultItIs(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/shim.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[Fault]string{"": "", FaultOfHost: "host", FaultOfProfile: "profile", FaultOfEither: "either"}
	got, want := map[int]string{}, map[int]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|[^|]*\| ?([a-z]*) ?\|[^|]*\|$`).FindAllStringSubmatch(string(page), -1) {
		code, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		got[code] = row[2]
	}
	for code := range 256 {
		if c := ExitCode(code); c.Known() {
			r, _ := c.Refusal()
			want[code] = words[r.Fault]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
