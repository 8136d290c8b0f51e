//go:build linux

package hosts

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestEnvelopesOfAnotherSpelling edits the honest envelope.
func TestEnvelopesOfAnotherSpelling(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	o.params = "KPSSH_VAR_text=x\n"
	honest := o.text()
	field := func(name, value string) string { return name + ": " + value + "\n" }
	script, params := field("script-b64", b64(o.script)), field("params-b64", b64(o.params))
	evil := w.join(t, "touch /tmp/evil\n", w.mallory)
	with := func(old, new string) string {
		if !strings.Contains(honest, old) {
			t.Fatalf("the envelope does not hold %q", old)
		}
		return strings.Replace(honest, old, new, 1)
	}
	half := len(b64(o.params)) / 2
	spaced := b64(o.params)[:half] + " " + b64(o.params)[half:]
	for name, c := range map[string]struct{ text, says string }{
		"nothing":                       {"", "envelope: "},
		"a line break":                  {"\n", "envelope: "},
		"a space in base64":             {with(params, field("params-b64", spaced)), "one spelling"},
		"a tab in base64":               {with(params, field("params-b64", strings.Replace(spaced, " ", "\t", 1))), "one spelling"},
		"base64 on two lines":           {with(params, field("params-b64", strings.Replace(spaced, " ", "\n", 1))), "one spelling"},
		"two padded blocks together":    {with(params, field("params-b64", "S1BTU0hfQT0xCg==S1BTU0hfQT0xCg==")), "one spelling"},
		"padding in the middle":         {with(params, field("params-b64", "S1BT=U0hfQT0xCg=")), "one spelling"},
		"no padding":                    {with(params, field("params-b64", "S1BTU0hfQT0xCg")), "one spelling"},
		"bits behind the padding":       {with(params, field("params-b64", "S1BTU0hfQT0xCh==")), "one spelling"},
		"the URL alphabet":              {with(params, field("params-b64", "S1BTU0hfQT0-_w==")), "one spelling"},
		"CR LF":                         {strings.ReplaceAll(honest, "\n", "\r\n"), "one spelling"},
		"a NUL":                         {with("phase: join", "phase: jo\x00in"), "one spelling"},
		"a NUL behind":                  {honest + "\x00", "one spelling"},
		"a script behind the script":    {honest + field("script-b64", b64(evil.script)), "script twice"},
		"a script before the script":    {with(script, field("script-b64", b64(evil.script))+script), "script twice"},
		"a second phase":                {with("phase: join", "phase: join\nphase: leave"), "phase twice"},
		"a second signature field":      {honest + field("sig-b64", b64(evil.sig)), "sig twice"},
		"an unknown field":              {honest + "shim: /bin/sh\n", "one spelling"},
		"a field in capitals":           {with("script-b64", "Script-B64"), "one spelling"},
		"a version 2":                   {with("kpssh-envelope: 1", "kpssh-envelope: 2"), "one spelling"},
		"no version":                    {with("kpssh-envelope: 1\n", ""), "kpssh-envelope missing"},
		"no script":                     {with(script, ""), "script-b64 missing"},
		"no signature":                  {with(field("sig-b64", b64(o.sig)), ""), "sig-b64 missing"},
		"two envelopes":                 {honest + honest, "twice"},
		"a statement beside the script": {honest + field("statement-b64", b64("x")), "takes no statement"},
		"a run-id in capitals":          {with("phase: join", "run-id: "+strings.Repeat("A", 32)+"\nphase: join"), "one spelling"},
		"a run-id that is a path":       {with("phase: join", "run-id: ../../../../etc/cron.d/evil00000\nphase: join"), "one spelling"},
		"a script over its limit":       {with(script, field("script-b64", b64(strings.Repeat("#", 1<<20+1)))), "of 1048577 bytes"},
		"parameters over their limit":   {with(params, field("params-b64", b64(strings.Repeat("x", 256<<10+1)))), "of 262145 bytes"},
		"signatures over their limit":   {with(field("sig-b64", b64(o.sig)), field("sig-b64", b64(strings.Repeat("x", 16<<10+1)))), "of 16385 bytes"},
	} {
		t.Run(name, func(t *testing.T) { w.refuses(t, c.text, 4, c.says) })
	}
	t.Run("an unknown phase", func(t *testing.T) { w.refuses(t, with("phase: join", "phase: exec"), 5, "phase exec") })
	w.runs(t, o)
}

// endless repeats a text for ever and counts what was taken of it.
type endless struct {
	text  string
	limit int64
	taken atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.taken.Load() >= e.limit {
		return 0, io.EOF
	}
	n := 0
	for n+len(e.text) <= len(p) {
		n += copy(p[n:], e.text)
	}
	e.taken.Add(int64(n))
	return n, nil
}

// TestAHundredMebibytesAreNotRead: the shim answers when it has seen enough, and takes no more.
func TestAHundredMebibytesAreNotRead(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	for name, c := range map[string]struct{ head, again string }{
		"zeros":                        {"", "\x00"},
		"one endless line":             {"", "A"},
		"one endless line of base64":   {strings.TrimSuffix(o.text(), "\n"), "AAAA"},
		"empty lines behind the whole": {o.text(), "\n"},
		"a field again and again":      {o.text(), "params-b64: \n"},
	} {
		t.Run(name, func(t *testing.T) {
			before, began := w.image(t), time.Now()
			input := &endless{text: c.again, limit: 100 << 20}
			got := w.session(t, io.MultiReader(strings.NewReader(c.head), input), "", nil)
			if got.code != 4 || got.stdout != "" || !strings.Contains(got.stderr, "envelope: ") {
				t.Errorf("answered %+v, want 4", got)
			}
			// 2 MiB, and what is in the channel's and the socket's windows
			if taken := input.taken.Load(); taken > 16<<20 {
				t.Errorf("%d bytes were taken", taken)
			}
			t.Logf("answered after %v, %d KiB", time.Since(began).Round(time.Millisecond), input.taken.Load()>>10)
			w.unchanged(t, before)
		})
	}
	w.runs(t, o)
}

// drip gives one byte of a text each quarter of a second, and never ends.
type drip struct{ text string }

func (d *drip) Read(p []byte) (int, error) {
	time.Sleep(250 * time.Millisecond)
	c := byte('\n')
	if d.text != "" {
		c, d.text = d.text[0], d.text[1:]
	}
	p[0] = c
	return 1, nil
}

// TestASlowCallerIsHungUpOnAndHoldsNobodyUp: the shim waits for a minute in all, not a minute for each byte, and
// others run meanwhile.
func TestASlowCallerIsHungUpOnAndHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	o := w.join(t, "")
	began := time.Now()
	var open time.Duration // a caller that has sent all and does not end
	done, still := make(chan answer), make(chan answer)
	go func() { done <- w.session(t, &drip{o.text()}, "", nil) }()
	go func() {
		reader, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, o.text()) }() //nolint:errcheck // the shim hangs up
		got := w.session(t, reader, "", nil)
		open = time.Since(began)
		still <- got
		_ = writer.Close() //nolint:errcheck // nobody reads any more
	}()
	w.runs(t, o)
	if waited := time.Since(began); waited > 30*time.Second {
		t.Errorf("others waited %v", waited)
	}
	for _, answers := range []chan answer{still, done} {
		got := <-answers
		if got.code != 4 || !strings.Contains(got.stderr, "no end of input within 60 s") {
			t.Errorf("answered %+v, want 4", got)
		}
	}
	if elapsed := time.Since(began); elapsed < 55*time.Second || open > 90*time.Second {
		t.Errorf("hung up after %v and %v, want a minute", elapsed, open)
	}
	if ran := w.read(t, ranFile); ran != o.mark+"\n" {
		t.Errorf("what ran left %q", ran)
	}
}

// TestWorkForStrangersIsBounded: whoever has the login key and no signing key makes the host work, but not for long.
func TestWorkForStrangersIsBounded(t *testing.T) {
	w := newWorld(t)
	honest := w.join(t, "")
	fill := func(line string) string { return strings.Repeat(line, (1<<20)/len(line)) }
	block := signatures(t, "kpssh", honest.script, w.mallory)
	params := &strings.Builder{}
	for i := range 97 {
		fmt.Fprintf(params, "#warrant: param KPSSH_P%d optional re %s\n", i, strings.Repeat("[a-z]{0,255}", 2))
	}
	for name, c := range map[string]struct {
		script, sig string
		code        envelope.ExitCode
	}{
		"a mebibyte of warrant lines":       {fill("#warrant: v1\n"), block, 14},
		"a mebibyte of ends":                {fill("#warrant: end\n"), block, 14},
		"a mebibyte of templates":           {fill("{{"), block, 2},
		"a mebibyte of NUL":                 {fill("\x00"), block, 2},
		"a mebibyte of line feeds":          {fill("\n"), block, 2},
		"one line of a mebibyte":            {fill("x"), block, 2},
		"a warrant line of a mebibyte":      {"#warrant: v1 " + fill("x")[:1<<20-20], block, 14},
		"a hundred patterns":                {strings.Replace(honest.script, "#warrant: end\n", params.String()+"#warrant: end\n", 1), block, 2},
		"eight signatures of strangers":     {honest.script, strings.Repeat(block, 8), 2},
		"sixteen KiB of BEGIN lines":        {honest.script, strings.Repeat("-----BEGIN SSH SIGNATURE-----\n", 540), 2},
		"one signature of sixteen KiB":      {honest.script, testkit.Armor(make([]byte, 11900)), 2},
		"sixteen KiB of line feeds as such": {honest.script, strings.Repeat("\n", 16<<10), 2},
	} {
		t.Run(name, func(t *testing.T) {
			o, began := honest, time.Now()
			o.script, o.sig = c.script, c.sig
			w.refuses(t, o.text(), c.code, "")
			if took := time.Since(began); took > 20*time.Second { // half a second on an idle machine
				t.Errorf("it took %v", took)
			}
		})
	}
	w.runs(t, honest)
}
