package transcript

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxText bounds Text in bytes; a HostRun's transcriptTail takes as many
// characters (docs/api/hostrun.md).
const MaxText = 4096

// streamTail is what is kept of each of stdout and stderr.
const streamTail = 2000

// cutMark begins a stream of which only the end is shown.
const cutMark = "[…]"

// Transcript takes the two streams of one run.
type Transcript struct {
	Stdout, Stderr *Stream
}

// New keeps none of the given secret values.
func New(secrets []string) *Transcript {
	return &Transcript{Stdout: newStream(secrets), Stderr: newStream(secrets)}
}

// Text is the end of stdout, then the end of stderr. Both streams must be over.
func (t *Transcript) Text() string {
	out, errs := t.Stdout.Tail(), t.Stderr.Tail()
	if out != "" && errs != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return fit(out+errs, MaxText)
}

// fit drops whole characters from the front: the replacement character is longer
// than the byte it stands for.
func fit(s string, limit int) string {
	for len(s) > limit {
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
	}
	return s
}

// Stream is one of them. It may be written from one goroutine and read from
// another.
type Stream struct {
	mu       sync.Mutex
	redactor redactor
	tail     tail
}

func newStream(secrets []string) *Stream {
	r := newRedactor(secrets)
	return &Stream{redactor: r, tail: tail{limit: streamTail + r.reach()}}
}

// Write never fails and never blocks.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail.write(p)
	return len(p), nil
}

// Tail gives the last part of the stream, which is over.
func (s *Stream) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.tail.buf
	from := max(0, len(kept)-streamTail)
	isCut := from > 0 || s.tail.lost
	text := fit(printable(s.redactor.hide(kept, from), isCut), streamTail)
	if isCut {
		text = cutMark + text
	}
	return text
}
