package transcript

import (
	"bytes"
	"cmp"
	"slices"
)

// mark stands where a secret stood.
const mark = "[redacted]"

// minPart is how much of a secret's beginning at the end of a stream is hidden;
// less than that tells nothing and would hide ordinary words.
const minPart = 4

// shimLine begins what the host's shim says for itself, also behind output that it has cut.
const shimLine = "kpssh-shim: "

// redactor hides secret values in the end of a stream, however a shell spells them there.
type redactor struct{ secrets []secret }

// span is a part of a stream.
type span struct{ from, to int }

func newRedactor(values []string) redactor {
	var r redactor
	for _, v := range values {
		if v != "" {
			r.secrets = append(r.secrets, newSecret(v))
		}
	}
	return r
}

// reach is the length of the longest spelling of a secret: who keeps as much of a stream before
// what is shown finds each secret of which a part would be shown.
func (r redactor) reach() int {
	longest := 0
	for _, s := range r.secrets {
		longest = max(longest, s.spelled)
	}
	return longest
}

// hide gives b from that byte on, with a mark in the place of each secret.
func (r redactor) hide(b []byte, from int) []byte {
	var out []byte
	for _, s := range r.spans(b) {
		if s.to <= from {
			continue
		}
		out = append(out, b[from:max(from, s.from)]...)
		out = append(out, mark...)
		from = s.to
	}
	return append(out, b[from:]...)
}

// spans are the parts of b that are secret, in their order. Those that overlap are one.
func (r redactor) spans(b []byte) []span {
	if len(r.secrets) == 0 {
		return nil
	}
	found := r.whole(b)
	for _, end := range ends(b) {
		found = append(found, r.begun(b[:end])...)
	}
	slices.SortFunc(found, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	var apart []span
	for _, s := range found {
		if n := len(apart); n > 0 && s.from < apart[n-1].to {
			apart[n-1].to = max(apart[n-1].to, s.to)
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// whole are the secrets in b.
func (r redactor) whole(b []byte) []span {
	var found []span
	for _, reading := range readings() {
		value, at := reading.read(b)
		for _, s := range r.secrets {
			s.scan(value, func(from, to int) { found = append(found, span{at[from], at[to]}) })
		}
	}
	return found
}

// ends are where a stream may have been cut in the middle of a secret: at its end, for the connection may
// have been lost, and before the last thing that the shim says, for it cuts output that is too long.
func ends(b []byte) []int {
	at := []int{len(b)}
	if i := bytes.LastIndex(b, []byte(shimLine)); i > 0 {
		at = append(at, i)
	}
	return at
}

// begun are the secrets that have begun at the end of b. The spelling of the last byte may have been cut, too.
func (r redactor) begun(b []byte) []span {
	var found []span
	for cut := max(0, len(b)-longestSpelling+1); cut <= len(b); cut++ {
		if cut < len(b) && !beginsSpelling(b[cut:]) {
			continue
		}
		for _, reading := range readings() {
			value, at := reading.read(b[:cut])
			for _, s := range r.secrets {
				if n := s.scan(value, func(int, int) {}); n >= minPart {
					found = append(found, span{at[len(value)-n], len(b)})
				}
			}
		}
	}
	return found
}

// secret is one value, and for each of its beginnings the longest shorter one that this ends with.
type secret struct {
	value   []byte
	shorter []int32
	spelled int // the length of its longest spelling
}

func newSecret(value string) secret {
	s := secret{value: []byte(value), shorter: make([]int32, len(value)+1)}
	for n := 1; n < len(value); n++ {
		s.shorter[n+1] = int32(s.step(int(s.shorter[n]), value[n])) //nolint:gosec // values are far shorter than 2 GiB
	}
	for _, c := range s.value {
		s.spelled += spelling(c)
	}
	return s
}

// step is how many bytes of the secret stand at the end of a text, where n did before c came.
func (s *secret) step(n int, c byte) int {
	for n > 0 && (n == len(s.value) || s.value[n] != c) {
		n = int(s.shorter[n])
	}
	if s.value[n] == c {
		n++
	}
	return n
}

// scan reports each occurrence in the text, also those that overlap, and gives how many bytes of another
// stand at its end. It takes time by the text alone, whatever that repeats of the secret.
func (s *secret) scan(text []byte, found func(from, to int)) int {
	n := 0
	for i, c := range text {
		if n = s.step(n, c); n == len(s.value) {
			found(i+1-n, i+1)
		}
	}
	if n == len(s.value) {
		n = int(s.shorter[n])
	}
	return n
}
