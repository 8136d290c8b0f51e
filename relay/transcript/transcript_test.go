package transcript

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func feed(s *Stream, text string, size int) {
	for len(text) > 0 {
		n := min(size, len(text))
		if _, err := s.Write([]byte(text[:n])); err != nil {
			panic(err)
		}
		text = text[n:]
	}
}

func TestSecretsNeverShowWhereverTheBorderIs(t *testing.T) {
	secrets := []string{"tok", "token-1234567890", "", "zz"}
	cases := map[string]struct{ in, want string }{
		"alone":                      {"token-1234567890", "[redacted]"},
		"in a line":                  {"joining with token-1234567890 now\n", "joining with [redacted] now\n"},
		"twice in a row":             {"token-1234567890token-1234567890", "[redacted][redacted]"},
		"a shorter one that is like": {"tok-", "[redacted]-"},
		"cut in its middle":          {"x=token-12345", "x=[redacted]"},
		"only a few letters of it":   {"x=to", "x=to"},
		"at the end":                 {"x=zz", "x=[redacted]"},
		"begun twice":                {"tztoken-1234567890", "tz[redacted]"},
		"nothing secret":             {"hello\n", "hello\n"},
		"overlapping":                {"zzz", "[redacted]"},
		"behind what the shim cut":   {"x=token-123kpssh-shim: script exited 1", "x=[redacted]kpssh-shim: script exited 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.in); size++ {
				s := New(secrets)
				feed(s.Stdout, c.in, size)
				if got := s.Text(); got != c.want {
					t.Fatalf("in pieces of %d: %q, want %q", size, got, c.want)
				}
			}
		})
	}
}

// bash writes a value that holds a quote otherwise than it is, where it traces commands.
func TestATracedSecretDoesNotShow(t *testing.T) {
	const secret = "it's 'mine'"
	for in, want := range map[string]string{
		secret:                              "[redacted]",
		"+ : 'it'\\''s '\\''mine'\\'''\n":   "+ : '[redacted]'\n",
		"+ : 'it'\\''s '\\''mi":             "+ : '[redacted]",
		"+ : 'it'\\''s not '\\''mine'\\'''": "+ : 'it'\\''s not '\\''mine'\\'''",
	} {
		for size := 1; size <= len(in); size++ {
			s := New([]string{secret})
			feed(s.Stdout, in, size)
			if got := s.Text(); got != want {
				t.Fatalf("in pieces of %d: %q, want %q", size, got, want)
			}
		}
	}
}

func TestTextIsBoundedPrintableAndTheEnd(t *testing.T) {
	cases := map[string]struct{ out, errs, suffix string }{
		"much of both":           {strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20) + "last", "last"},
		"escape sequences":       {"\x1b[2Jhello\r\n", "", "\uFFFD[2Jhello\uFFFD\n"},
		"bytes that are no text": {"ok\xff\xfe\x00", "", "ok\uFFFD\uFFFD\uFFFD"},
		"many bytes of no text":  {strings.Repeat("\xff", 1<<16), strings.Repeat("\xff", 1<<16), "\uFFFD"},
		"characters cut in two":  {strings.Repeat("é", 1<<14) + "x", "", "éx"},
		"bidirectional controls": {"a\u202eb", "", "a\uFFFDb"},
		"stdout without an end":  {"out", "err\n", "out\nerr\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := New(nil)
			feed(s.Stdout, c.out, 4096)
			feed(s.Stderr, c.errs, 4096)
			got := s.Text()
			if len(got) > MaxText || !utf8.ValidString(got) || !strings.HasSuffix(got, c.suffix) {
				t.Fatalf("%d bytes, ends with %q", len(got), got[max(0, len(got)-40):])
			}
			if strings.ContainsAny(got, "\x1b\r\x00") {
				t.Fatal("a control character is left")
			}
		})
	}
}

func TestOnlyACutStreamSaysSo(t *testing.T) {
	s := New(nil)
	feed(s.Stdout, strings.Repeat("a", streamTail), 7)
	if got := s.Stdout.Tail(); strings.HasPrefix(got, cutMark) {
		t.Fatal("a whole stream says that it was cut")
	}
	feed(s.Stdout, "a", 1)
	if got := s.Stdout.Tail(); !strings.HasPrefix(got, cutMark) {
		t.Fatal("a cut stream looks whole")
	}
}

// What a stream keeps depends on the secrets and not on what is written, also where a script repeats the
// beginning of one for ever.
func TestAStreamKeepsLittle(t *testing.T) {
	for _, secret := range []string{"secret-value", strings.Repeat("a", 1<<16) + "b"} {
		s := New([]string{secret})
		for range 100 {
			feed(s.Stdout, strings.Repeat(secret[:len(secret)-1], 1+100_000/len(secret)), 4096)
		}
		if n := cap(s.Stdout.tail.buf); n > 4*(len(secret)+streamTail) {
			t.Fatalf("keeps %d bytes for a secret of %d", n, len(secret))
		}
		if got := s.Stdout.Tail(); !strings.HasSuffix(got, mark) {
			t.Fatalf("shows the beginning of a secret: %.80q", got)
		}
	}
}

// A secret of which only the end would be shown, in each spelling and at each place of the cut.
func TestASecretAtTheBeginningOfTheTailDoesNotShow(t *testing.T) {
	const secret = "it's-\xc3\xa9-and-more"
	for _, spelled := range []string{secret, `'it'\''s-` + "\xc3\xa9" + `-and-more'`, `$'it\'s-\303\251-and-more'`, `\i\t\'\s\-` + "\\\xc3\\\xa9" + `\-\a\n\d\-\m\o\r\e`} {
		for after := streamTail - len(spelled); after <= streamTail; after++ {
			s := New([]string{secret})
			feed(s.Stdout, strings.Repeat(".", 3000)+spelled+strings.Repeat("-", after), 512)
			got := s.Stdout.Tail()
			before := strings.TrimRight(strings.TrimPrefix(got, cutMark), "-")
			if !strings.HasSuffix(got, strings.Repeat("-", after)) || !strings.HasSuffix(strings.Repeat(".", 3000)+mark, strings.Trim(before, "$'")) {
				t.Fatalf("%s, %d bytes before the end: %.60q", spelled, after, got)
			}
		}
	}
}

// FuzzRedact: no secret shows, however the stream is cut, and nothing else is hidden.
func FuzzRedact(f *testing.F) {
	f.Add("a secret b", "secret", 3)
	f.Add(`a s\e\c\r\e\t b`, "secret", 3)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		if size < 1 || len(secret) == 0 || len(text) > 1000 || strings.Contains(mark, secret) || strings.ContainsAny(secret, "[]") {
			return
		}
		s := New([]string{secret})
		feed(s.Stdout, text, size)
		got := string(s.Stdout.redactor.hide(s.Stdout.tail.buf, 0))
		for _, reading := range readings() {
			if value, _ := reading.read([]byte(got)); strings.Contains(string(value), secret) {
				t.Fatalf("%q shows %q", got, secret)
			}
		}
		if !strings.Contains(got, mark) && got != text {
			t.Fatalf("%q, want %q", got, text)
		}
	})
}
