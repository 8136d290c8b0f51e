package transcript

import (
	"bytes"
	"slices"
	"strings"
)

// mark stands where a secret stood.
const mark = "[redacted]"

// minPart is how much of a secret's beginning at the end of a stream is hidden;
// less than that tells nothing and would hide ordinary words.
const minPart = 4

// redactor replaces secret values in a stream. It holds back as many bytes as a
// secret could still begin with, so that a border between two writes hides none.
type redactor struct {
	secrets [][]byte // longest first: a secret may begin with another
	held    []byte
	ending  bool
	out     func([]byte)
}

func newRedactor(secrets []string, out func([]byte)) *redactor {
	r := &redactor{out: out}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		r.secrets = append(r.secrets, []byte(s))
		if inQuotes := quoted(s); inQuotes != s {
			r.secrets = append(r.secrets, []byte(inQuotes))
		}
	}
	slices.SortFunc(r.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// quoted is how bash writes a value between single quotes, in the trace of "set -x" and elsewhere: a
// single quote in it ends them, stands by itself, and begins them again.
func quoted(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

func (r *redactor) write(p []byte) {
	if len(r.secrets) == 0 {
		r.out(p)
		return
	}
	r.held = append(r.held, p...)
	r.pass(len(r.held) - len(r.secrets[0]) + 1)
}

// end passes on what was held back. There the beginning of a secret counts as
// one: the connection may have been cut in its middle.
func (r *redactor) end() {
	if len(r.secrets) > 0 {
		r.ending = true
		r.pass(len(r.held))
	}
}

// pass decides on every position below limit, where the longest secret would
// have arrived whole.
func (r *redactor) pass(limit int) {
	at, shown := 0, 0
	for at < limit {
		n := r.secretAt(r.held[at:])
		if n == 0 {
			at++
			continue
		}
		r.out(r.held[shown:at])
		r.out([]byte(mark))
		at += n
		shown = at
	}
	r.out(r.held[shown:at])
	r.held = append(r.held[:0], r.held[at:]...)
}

func (r *redactor) secretAt(b []byte) int {
	for _, s := range r.secrets {
		if bytes.HasPrefix(b, s) {
			return len(s)
		}
		if r.ending && len(b) >= minPart && bytes.HasPrefix(s, b) {
			return len(b)
		}
	}
	return 0
}
