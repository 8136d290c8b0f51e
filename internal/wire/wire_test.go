package wire_test

import (
	"bytes"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/wire"
)

func TestReaderReadsWhatIsThere(t *testing.T) {
	b := append([]byte{7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9}, wire.AppendString(nil, "abc")...)
	r := wire.NewReader(b)
	if r.Uint8() != 7 || r.Uint32() != 8 || r.Uint64() != 9 || !r.More() || r.Done() {
		t.Error("numbers")
	}
	if !bytes.Equal(r.String(), []byte("abc")) || !r.Done() || r.More() {
		t.Error("string")
	}
}

func TestReaderFailsForGood(t *testing.T) {
	for name, read := range map[string]func(*wire.Reader) bool{
		"uint32 of three bytes":   func(r *wire.Reader) bool { return r.Uint32() == 0 },
		"uint64 of three bytes":   func(r *wire.Reader) bool { return r.Uint64() == 0 },
		"more than there is":      func(r *wire.Reader) bool { return r.Take(4) == nil },
		"a length past the end":   func(r *wire.Reader) bool { r.Rest = []byte{0, 0, 0, 9, 1}; return r.String() == nil },
		"a length near 2^32":      func(r *wire.Reader) bool { r.Rest = []byte{255, 255, 255, 255, 1}; return r.String() == nil },
		"a number that is no int": func(r *wire.Reader) bool { return !r.Mpint() },
	} {
		t.Run(name, func(t *testing.T) {
			r := wire.NewReader([]byte{0, 1, 2})
			if !read(r) || !r.Failed || r.Done() || r.More() || r.Uint8() != 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestMpintTakesOneSpelling(t *testing.T) {
	for name, tt := range map[string]struct {
		value []byte
		want  bool
	}{
		"a byte": {[]byte{1}, true}, "the top bit behind a zero": {[]byte{0, 0x80}, true}, "zero": {nil, false},
		"zero as a byte": {[]byte{0}, false}, "padded": {[]byte{0, 1}, false}, "negative": {[]byte{0x80}, false},
	} {
		if got := wire.NewReader(wire.AppendString(nil, tt.value)).Mpint(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
