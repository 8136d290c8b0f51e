package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

func TestZeroDecisionDenies(t *testing.T) {
	var d decision.Decision
	if d.Allowed() || d.Outcome != decision.Deny || d.Outcome.String() != "deny" {
		t.Errorf("the zero Decision allows: %+v", d)
	}
	if got, want := d.Message(), "/: Internal"; got != want {
		t.Errorf("Message = %q, want %q", got, want)
	}
}

func TestAdmitAllows(t *testing.T) {
	d := decision.Admit("SSHHost", "a", "fine")
	if !d.Allowed() || d.Outcome.String() != "allow" || d.Reason != decision.Verified {
		t.Errorf("Admit = %+v", d)
	}
	if got, want := d.Message(), "SSHHost/a: Verified: fine"; got != want {
		t.Errorf("Message = %q, want %q", got, want)
	}
}

func TestMessage(t *testing.T) {
	full := decision.Decision{Reason: decision.Unsigned, Kind: "SSHJoinProfile", Name: "tls", Where: "join", What: "the script has no signature", Hint: "hostwarrant sign -i FILE"}
	tests := map[string]struct {
		change func(*decision.Decision)
		want   string
	}{
		"all parts":    {func(*decision.Decision) {}, "SSHJoinProfile/tls: join: Unsigned: the script has no signature; hint: hostwarrant sign -i FILE"},
		"no where":     {func(d *decision.Decision) { d.Where = "" }, "SSHJoinProfile/tls: Unsigned: the script has no signature; hint: hostwarrant sign -i FILE"},
		"no hint":      {func(d *decision.Decision) { d.Hint = "" }, "SSHJoinProfile/tls: join: Unsigned: the script has no signature"},
		"control":      {func(d *decision.Decision) { d.What, d.Hint = "a\x1b[2Jb\nc", "" }, `SSHJoinProfile/tls: join: Unsigned: a\x1b[2Jb\nc`},
		"bidi":         {func(d *decision.Decision) { d.What, d.Hint = "a\u202eb", "" }, `SSHJoinProfile/tls: join: Unsigned: a\u202eb`},
		"not UTF-8":    {func(d *decision.Decision) { d.What, d.Hint = "a\xffb", "" }, `SSHJoinProfile/tls: join: Unsigned: a\ufffdb`},
		"other tongue": {func(d *decision.Decision) { d.What, d.Hint = "größe", "" }, "SSHJoinProfile/tls: join: Unsigned: größe"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := full
			tt.change(&d)
			if got := d.Message(); got != tt.want {
				t.Errorf("Message = %q\n           want %q", got, tt.want)
			}
		})
	}
}

// A rule that names no next command gives the usual one of its Reason, and its own goes before that.
func TestADenialNamesWhatToDoNext(t *testing.T) {
	for reason, want := range map[decision.Reason]string{
		decision.Malformed:         "mend it, then see: hostwarrant verify FILE --policy POLICY --root ROOTS",
		decision.TooLarge:          "mend it, then see: hostwarrant verify FILE --policy POLICY --root ROOTS",
		decision.StatementRejected: "hostwarrant help statement tells the rules",
		decision.KindMismatch:      "compare the webhook configuration with the shipped one",
		decision.Internal:          "look at the program's log",
	} {
		refusal := decision.Errorf(reason, "what is wrong")
		if got := refusal.Denied("SSHHost", "h").Hint; got != want {
			t.Errorf("%s hints at %q, want %q", reason, got, want)
		}
		if got := refusal.Try("its own").Denied("SSHHost", "h").Hint; got != "its own" {
			t.Errorf("%s with a hint of its own hints at %q", reason, got)
		}
	}
}

func TestMessageStaysShortAndKeepsItsHint(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	d := decision.Decision{Reason: decision.BytesChanged, Kind: "SSHJoinProfile", Name: long, Where: long, What: long, Hint: "do this"}
	got := d.Message()
	if len(got) >= decision.MaxMessage {
		t.Errorf("Message has %d bytes, want fewer than %d", len(got), decision.MaxMessage)
	}
	if !strings.HasSuffix(got, "...; hint: do this") {
		t.Errorf("Message lost its hint: %q", got)
	}
	if strings.ContainsRune(got, '\ufffd') {
		t.Errorf("Message was cut inside a rune: %q", got)
	}
}

// The name of a kind is the caller's word where no rule judges it.
func TestMessageStaysShortWhateverIsLong(t *testing.T) {
	long := strings.Repeat("\u202e", 2000)
	for name, d := range map[string]decision.Decision{
		"the kind":   {Kind: long, Name: "a", Reason: decision.KindMismatch, What: "no rule judges it", Hint: "compare"},
		"everything": {Kind: long, Name: long, Where: long, Reason: decision.KindMismatch, What: long, Hint: long},
	} {
		if got := d.Message(); len(got) >= decision.MaxMessage || !strings.Contains(got, "KindMismatch: ") || strings.Contains(got, "\u202e") {
			t.Errorf("%s: %d bytes: %q", name, len(got), got)
		}
	}
}

func TestFromKeepsAReasonAndFailsClosed(t *testing.T) {
	inner := decision.Errorf(decision.Unsigned, "no %s", "signature").At("join").Try("sign")
	if got := decision.From(fmt.Errorf("reading: %w", inner)); got.Reason != decision.Unsigned || got.Where != "join" || got.Hint != "sign" {
		t.Errorf("From lost something: %+v", got)
	}
	if got := decision.From(errors.New("broken")); got.Reason != decision.Internal || got.What != "broken" {
		t.Errorf("From of a plain error = %+v, want Internal", got)
	}
	if d := inner.Denied("SSHHost", "a"); d.Allowed() || d.Message() != "SSHHost/a: join: Unsigned: no signature; hint: sign" {
		t.Errorf("Denied = %q", d.Message())
	}
	if got, want := inner.Error(), "join: Unsigned: no signature"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
}

func TestAtAndTryLeaveTheirReceiverAlone(t *testing.T) {
	e := decision.Errorf(decision.Unsigned, "x")
	changed := e.At("a").Try("b")
	if changed.Where != "a" || changed.Hint != "b" || e.Where != "" || e.Hint != "" {
		t.Errorf("receiver changed: %+v", e)
	}
}

func TestReasonsAreDistinct(t *testing.T) {
	seen := map[decision.Reason]bool{}
	for _, r := range decision.Reasons() {
		if r == "" || seen[r] {
			t.Errorf("reason %q is empty or listed twice", r)
		}
		seen[r] = true
	}
}
