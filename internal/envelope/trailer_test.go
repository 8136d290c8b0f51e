package envelope

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func trailerFor(out string) Trailer {
	return Trailer{RunID: testRunID, Phase: PhaseJoin, Exit: 7, Bytes: int64(len(out)), SHA256: sha256.Sum256([]byte(out))}
}

func TestTrailerReaderAcceptsOnlyTheOwnTrailerAtTheEnd(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 1000)
	own := func(out string) string { return trailerFor(out).Line() }
	other := trailerFor("x\n")
	other.RunID = "ffffffffffffffffffffffffffffffff"
	otherPhase := trailerFor("x\n")
	otherPhase.Phase = PhaseLeave
	forged := own("")
	cases := map[string]struct {
		stream, out string
		want        string // part of the refusal, "" accepted
	}{
		"no output":                       {own(""), "", ""},
		"a line":                          {"x\n" + own("x\n"), "x\n", ""},
		"no final line feed":              {"x" + own("x"), "x", ""},
		"long output":                     {long + own(long), long, ""},
		"a forged trailer in the middle":  {forged + "x\n" + own(forged+"x\n"), forged + "x\n", ""},
		"a forged trailer last but one":   {forged + own(forged), forged, ""},
		"nothing at all":                  {"", "", "ends without one"},
		"no trailer":                      {"x\n", "x\n", "ends without one"},
		"a stream cut inside the trailer": {"x\n" + strings.TrimSuffix(own("x\n"), "t=0\n"), "x\n" + strings.TrimSuffix(own("x\n"), "t=0\n"), "ends without one"},
		"a trailer without its line feed": {"x\n" + strings.TrimSuffix(own("x\n"), "\n"), "x\n" + strings.TrimSuffix(own("x\n"), "\n"), "ends without one"},
		"bytes after the trailer":         {own("") + "x\n", own("") + "x\n", "no trailer"},
		"one more line feed after it":     {own("") + "\n", own("") + "\n", "no trailer"},
		"another run's trailer":           {"x\n" + other.Line(), "x\n" + other.Line(), "another run"},
		"another phase's trailer":         {"x\n" + otherPhase.Line(), "x\n" + otherPhase.Line(), "another phase"},
		"a byte lost":                     {"\n" + own("x\n"), "\n" + own("x\n"), "1 bytes came"},
		"a byte more":                     {"xy\n" + own("x\n"), "xy\n" + own("x\n"), "3 bytes came"},
		"a line feed that parts them":     {"x\n" + own("x"), "x\n" + own("x"), "2 bytes came"},
		"a byte changed":                  {"y\n" + own("x\n"), "y\n" + own("x\n"), "another digest"},
		"a byte changed far before":       {"1" + long[1:] + own(long), "1" + long[1:] + own(long), "another digest"},
	}
	for name, c := range cases {
		for how, src := range map[string]io.Reader{"at once": strings.NewReader(c.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(c.stream))} {
			t.Run(name+" "+how, func(t *testing.T) {
				r := NewTrailerReader(src, testRunID, PhaseJoin)
				got, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != c.out {
					t.Fatalf("output %q, want %q", got, c.out)
				}
				_, refusal := r.Trailer()
				if c.want == "" {
					if refusal != nil {
						t.Fatalf("refused: %v", refusal)
					}
					return
				}
				if !errors.Is(refusal, ErrNoTrailer) || !strings.Contains(refusal.Error(), c.want) {
					t.Fatalf("refusal %v, want %q", refusal, c.want)
				}
			})
		}
	}
}

func TestTrailerReaderGivesNothingAfterABrokenStream(t *testing.T) {
	broken := errors.New("connection reset")
	src := io.MultiReader(strings.NewReader("x\n"+trailerFor("x\n").Line()), iotest.ErrReader(broken))
	r := NewTrailerReader(src, testRunID, PhaseJoin)
	got, err := io.ReadAll(r)
	if !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
	if !strings.HasPrefix(string(got), "x\n") {
		t.Fatalf("output %q", got)
	}
	if _, refusal := r.Trailer(); !errors.Is(refusal, ErrNoTrailer) {
		t.Fatalf("refusal %v", refusal)
	}
}

// endless gives n bytes without holding them.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	e.n -= n
	return n, nil
}

func TestTrailerReaderHoldsLittle(t *testing.T) {
	r := NewTrailerReader(&endless{n: 16 << 20}, testRunID, PhaseJoin)
	buf := make([]byte, 1<<16)
	for {
		_, err := r.Read(buf)
		if cap(r.ready)+cap(r.tail) > 64<<10 {
			t.Fatalf("holds %d bytes", cap(r.ready)+cap(r.tail))
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseTrailerHasOneSpelling(t *testing.T) {
	line := strings.TrimSuffix(trailerFor("x").Line(), "\n")
	if _, err := ParseTrailer(line); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"another version":       strings.Replace(line, "v1", "v2", 1),
		"two spaces":            strings.Replace(line, " exit", "  exit", 1),
		"a word more":           line + " x=1",
		"a word less":           strings.TrimSuffix(line, " cut=0"),
		"other order":           strings.Replace(line, "exit=7 bytes=1", "bytes=1 exit=7", 1),
		"a leading zero":        strings.Replace(line, "exit=7", "exit=07", 1),
		"a sign":                strings.Replace(line, "bytes=1", "bytes=+1", 1),
		"exit 256":              strings.Replace(line, "exit=7", "exit=256", 1),
		"sixteen digits":        strings.Replace(line, "bytes=1", "bytes=1000000000000000", 1),
		"no digits":             strings.Replace(line, "bytes=1", "bytes=", 1),
		"cut 2":                 strings.Replace(line, "cut=0", "cut=2", 1),
		"capitals in a digest":  strings.Replace(line, "sha256=", "sha256=A", 1)[:len(line)],
		"a short digest":        strings.Replace(line, " cut", "", 1),
		"a phase of no script":  strings.Replace(line, "phase=join", "phase=probe", 1),
		"a run-id of 31 digits": strings.Replace(line, "run-id=0", "run-id=", 1),
	}
	for name, bad := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTrailer(bad)
			wantCode(t, err, ExitEnvelope, "kpssh-trailer")
		})
	}
}

// FuzzTrailerReader: never panics, never loses or invents a byte, and an
// accepted trailer is exactly what stood at the end.
func FuzzTrailerReader(f *testing.F) {
	f.Add([]byte("x\n" + trailerFor("x\n").Line()))
	f.Add([]byte("x\n" + trailerFor("x").Line()))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewTrailerReader(bytes.NewReader(stream), testRunID, PhaseJoin)
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		tr, refusal := r.Trailer()
		if refusal != nil {
			if !bytes.Equal(out, stream) {
				t.Fatal("refused, but the output is not the stream")
			}
			return
		}
		if sha256.Sum256(out) != tr.SHA256 || int64(len(out)) != tr.Bytes || tr.RunID != testRunID {
			t.Fatal("accepted a trailer that does not fit")
		}
		if string(stream) != string(out)+tr.Line() {
			t.Fatal("output and trailer are not the stream")
		}
	})
}
