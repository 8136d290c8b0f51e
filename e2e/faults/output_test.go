//go:build linux

package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
)

// The trailer says whether the output is whole, however much it is.
func TestMuchOutputIsWholeOrSaidToBeCut(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	for n, c := range []struct {
		name    string
		mib     int
		trailer delivery.TrailerState
	}{{"10 MiB", 10, delivery.Whole}, {"as much as a host sends", 16, delivery.Whole}, {"more", 17, delivery.Truncated}} {
		r := deliver(t, h.order(t, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x\n", c.mib<<20)))
		if r.Result != delivery.Succeeded || r.Trailer != c.trailer || len(r.Transcript) > 4096 || !strings.HasSuffix(r.Transcript, "xxx") {
			t.Errorf("%s: %s, trailer %s, %d bytes kept", c.name, r.Result, r.Trailer, len(r.Transcript))
		}
		if h.ran(t) != n+1 {
			t.Errorf("%s: %d runs", c.name, h.ran(t))
		}
	}
}

// A background child of the script keeps both of its streams open: the run ends with its script.
func TestAChildThatHoldsTheStreamsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	begun := time.Now()
	r := deliver(t, h.order(t, "(trap '' TERM; echo child; echo child >&2; sleep 600) &\necho parent\nexit 3\n"))
	if r.Result != delivery.ScriptFailed || r.ScriptExit != 3 || r.Trailer != delivery.Whole || !strings.Contains(r.Transcript, "parent\n") {
		t.Errorf("%+v", r)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	if r := deliver(t, h.order(t, "")); r.Result != delivery.Succeeded {
		t.Errorf("the next one: %+v", r)
	}
	if n := h.ran(t); n != 2 {
		t.Errorf("%d runs", n)
	}
}

// strange is a host of which sshd runs another program in the place of the shim, as the login account.
func strange(t *testing.T, program string) target {
	t.Helper()
	return newHost(t, func(o *lab.HostOptions) { o.ShimDir = courier.StrangeShim(t, program) })
}

// What a host does with the streams that no shim of ours does, through a real sshd.
func TestHostsThatEndStrangely(t *testing.T) {
	cases := map[string]struct {
		program string
		result  delivery.Result
		text    string
	}{
		// sshd tells the exit status at once, and closes when the child does
		"the exit status comes and the streams stay open": {"cat >/dev/null; echo out; sleep 600 & exit 0\n", delivery.Succeeded, "the script exited 0"},
		"the streams end and no exit status comes":        {"cat >/dev/null; echo out; exec >&- 2>&-; sleep 600\n", delivery.Cut, "no exit status within"},
		"it is killed by a signal":                        {"cat >/dev/null; echo out; kill -KILL $$\n", delivery.Cut, "exit code 137"},
		"it reads nothing and ends":                       {"echo out; exit 4\n", delivery.Refused, "exit code 4"},
		"an exit code of no shim":                         {"cat >/dev/null; echo out; exit 99\n", delivery.Cut, "exit code 99"},
		"output without an end":                           {"cat >/dev/null; yes out\n", delivery.Cut, "more output than is taken"},
		"errors without an end":                           {"cat >/dev/null; yes out >&2\n", delivery.Cut, "more output than is taken"},
		"a byte now and then, after the end of its work":  {"cat >/dev/null; (while sleep 0.2; do echo out; done) & exit 0\n", delivery.Cut, "no exit status within"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := strange(t, c.program)
			o := h.order(t, "")
			o.Limits.Run = 15 * time.Second
			begun := time.Now()
			r := deliver(t, o)
			if r.Result != c.result || !strings.Contains(r.Message, c.text) || r.Trailer != delivery.None || !strings.Contains(r.Transcript, "out") || len(r.Transcript) > 4096 {
				t.Errorf("%+v, want %s with %q", r, c.result, c.text)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			if ran := h.read(t, courier.StrangeFile); ran != "ran\n" {
				t.Errorf("what ran left %q", ran)
			}
		})
	}
}

// A secret that a script prints shows nowhere, whatever traces it, and wherever its bytes are parted on the way.
func TestASecretThatAScriptPrints(t *testing.T) {
	t.Parallel()
	const plain, quoted = "tok-3f9c1e.8d", `it's "1$2\3"`
	h := newHost(t, nil)
	cases := map[string]struct{ secret, body, want string }{
		"once":                            {plain, "echo \"it is $S.\"\n", "it is [redacted].\n"},
		"traced":                          {plain, "set -x\n: \"$S\"\ntrue --token=\"$S\"\n", "--token=[redacted]"},
		"traced, with marks of the shell": {quoted, "set -x\n: \"$S\"\n", "[redacted]"},
		"in two writes of one byte and more": {
			plain, "printf %s \"${S:0:1}\"; sleep 0.3; printf %s \"${S:1:1}\"; sleep 0.3; echo \"${S:2}\"\n", "[redacted]\n",
		},
		"a byte at a time":          {plain, "for ((i=0; i<${#S}; i++)); do printf %s \"${S:i:1}\" >&2; sleep 0.05; done\n", "[redacted]"},
		"across the kept tail":      {plain, "for i in {1..300}; do echo \"$S\"; done\n", "[redacted]\n"},
		"at the border of a packet": {plain, "for ((i=32760; i<32770; i++)); do head -c $i /dev/zero | tr '\\0' x; echo \"$S\"; done\n", "[redacted]\n"},
	}
	runs := 0
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := delivery.Order{Target: h.Target(t, h.login.PEM), Limits: limits(), Secrets: []string{c.secret}}
			o.Envelope = h.signed(t, "S=$KPSSH_SECRET_JOIN\n"+c.body, func(w *warrant.Warrant) {
				p, err := warrant.ParseParam("KPSSH_SECRET_JOIN required secret type text")
				must(t, err)
				w.Params = append(w.Params, p)
			})
			var err error
			o.Envelope.Params, err = envelope.EncodeParams(map[string]string{"KPSSH_SECRET_JOIN": c.secret})
			must(t, err)
			r := deliver(t, o)
			runs++
			if r.Result != delivery.Succeeded || !strings.Contains(r.Transcript, c.want) || h.ran(t) != runs {
				t.Errorf("%s (%s), %d runs, want %q in %q", r.Result, r.Message, h.ran(t), c.want, r.Transcript)
			}
			for _, part := range []string{c.secret, c.secret[:6], c.secret[len(c.secret)-6:], "3f9c", `1$2`} {
				if strings.Contains(r.Transcript, part) {
					t.Errorf("the transcript holds %q: %q", part, r.Transcript)
				}
			}
		})
	}
}
