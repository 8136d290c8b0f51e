package sshsig

import (
	"encoding/binary"
)

// reader reads the SSH wire types of RFC 4251 section 5 from a byte slice.
// After a short read it stays failed and returns zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (r *reader) string() []byte { return r.take(uint64(r.uint32())) }

// mpint reads a positive multiple-precision integer in its one shortest form.
func (r *reader) mpint() bool {
	b := r.string()
	switch {
	case r.failed || len(b) == 0 || b[0]&0x80 != 0: // missing, zero or negative
		return false
	case b[0] == 0 && (len(b) == 1 || b[1]&0x80 == 0): // padded
		return false
	}
	return true
}

// done reports that everything was read and nothing is left.
func (r *reader) done() bool { return !r.failed && len(r.rest) == 0 }

func appendString[T []byte | string](b []byte, s T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
