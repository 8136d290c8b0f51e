package wire

import "encoding/binary"

// Reader takes bytes from the front of Rest. After a short read it stays Failed
// and returns zero values.
type Reader struct {
	Rest   []byte
	Failed bool
}

// NewReader reads b.
func NewReader(b []byte) *Reader { return &Reader{Rest: b} }

// Take gives the next n bytes.
func (r *Reader) Take(n uint64) []byte {
	if r.Failed || n > uint64(len(r.Rest)) {
		r.Failed = true
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Uint8 reads a byte.
func (r *Reader) Uint8() byte {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint32 reads a uint32.
func (r *Reader) Uint32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads a uint64.
func (r *Reader) Uint64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// String reads a string: its length as a uint32, then its bytes.
func (r *Reader) String() []byte { return r.Take(uint64(r.Uint32())) }

// Mpint reads a positive multiple-precision integer and reports whether it is in
// its one shortest form.
func (r *Reader) Mpint() bool {
	b := r.String()
	switch {
	case r.Failed || len(b) == 0 || b[0]&0x80 != 0: // missing, zero or negative
		return false
	case b[0] == 0 && (len(b) == 1 || b[1]&0x80 == 0): // padded
		return false
	}
	return true
}

// More reports that something is left to read.
func (r *Reader) More() bool { return !r.Failed && len(r.Rest) > 0 }

// Done reports that everything was read and nothing is left.
func (r *Reader) Done() bool { return !r.Failed && len(r.Rest) == 0 }

// AppendString writes a string.
func AppendString[T []byte | string](b []byte, s T) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
