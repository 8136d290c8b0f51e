package krl

import (
	"bytes"
	"math"
	"math/bits"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// PROTOCOL.krl, section 3.
const (
	certSerialList   = 0x20
	certSerialRange  = 0x21
	certSerialBitmap = 0x22
	certKeyID        = 0x23
	certExtension    = 0x39

	// maxBitmap is OpenSSH's SSHBUF_MAX_BIGNUM (sshbuf.h): longer numbers it does not read.
	maxBitmap = 16384 / 8
)

// certificates are the revoked certificates of one authority.
type certificates struct {
	ids     map[string]bool
	spans   []span
	bitmaps []bitmap
}

// span is a range of serial numbers with both its ends.
type span struct{ low, high uint64 }

// bitmap has the serial number offset+n revoked where bit n is set.
type bitmap struct {
	offset uint64
	bits   []byte // most significant first, the first one not zero
}

func (b bitmap) has(serial uint64) bool {
	n := serial - b.offset
	if serial < b.offset || n/8 >= uint64(len(b.bits)) {
		return false
	}
	return b.bits[uint64(len(b.bits))-1-n/8]>>(n%8)&1 == 1
}

// revoked reports whether c is among them.
func (s *certificates) revoked(c *ssh.Certificate) bool {
	if s == nil {
		return false
	}
	if s.ids[c.KeyId] {
		return true
	}
	for _, span := range s.spans {
		if span.low <= c.Serial && c.Serial <= span.high {
			return true
		}
	}
	for _, b := range s.bitmaps {
		if b.has(c.Serial) {
			return true
		}
	}
	return false
}

// certificates reads a certificate section.
func (l *List) certificates(r *wire.Reader) error {
	blob := r.String()
	reserved := r.String()
	// check: Malformed: a section that is cut off is a revocation that is lost
	if r.Failed || len(reserved) != 0 {
		return malformed("KRL certificate section has no proper beginning")
	}
	authority := anyAuthority
	if len(blob) > 0 {
		key, err := readable(blob)
		if err != nil {
			return err
		}
		authority = string(key.Marshal())
	}
	if l.certs[authority] == nil {
		l.certs[authority] = &certificates{ids: map[string]bool{}}
	}
	set := l.certs[authority]
	for r.More() {
		kind, section := r.Uint8(), r.String()
		// check: Malformed: a section that is cut off is a revocation that is lost
		if r.Failed {
			return malformed("KRL certificate section is cut short")
		}
		if err := set.section(kind, wire.NewReader(section)); err != nil {
			return err
		}
	}
	return nil
}

func (s *certificates) section(kind byte, r *wire.Reader) error {
	switch kind {
	case certSerialList:
		return s.serialList(r)
	case certSerialRange:
		return s.serialRange(r)
	case certSerialBitmap:
		return s.serialBitmap(r)
	case certKeyID:
		return eachString(r, s.keyID)
	case certExtension:
		return malformed("KRL certificate section carries an extension, which not every OpenSSH reads")
	}
	return malformed("KRL certificate section has a part of unknown type %d", kind)
}

func (s *certificates) keyID(id []byte) error {
	// check: Malformed: C programs read an id up to its NUL, or refuse it
	if bytes.IndexByte(id, 0) >= 0 {
		return malformed("KRL revokes a key id with a NUL in it")
	}
	s.ids[string(id)] = true
	return nil
}

// add takes a range. 0 stands for "no serial number": OpenSSH revokes none by it.
func (s *certificates) add(low, high uint64) error {
	// check: Malformed: OpenSSH refuses a list with such a range
	if low == 0 || low > high {
		return malformed("KRL revokes serial numbers %d to %d, which is no range", low, high)
	}
	s.spans = append(s.spans, span{low, high})
	return nil
}

func (s *certificates) serialList(r *wire.Reader) error {
	for r.More() {
		serial := r.Uint64()
		// add would refuse the 0 of a short read as well; this says it in plainer words.
		if r.Failed {
			return malformed("KRL list of serial numbers is cut short")
		}
		if err := s.add(serial, serial); err != nil {
			return err
		}
	}
	return nil
}

func (s *certificates) serialRange(r *wire.Reader) error {
	low, high := r.Uint64(), r.Uint64()
	// check: Malformed: what is left over or missing is a revocation that is lost
	if r.Failed || r.More() {
		return malformed("KRL range of serial numbers does not hold two numbers")
	}
	return s.add(low, high)
}

func (s *certificates) serialBitmap(r *wire.Reader) error {
	offset, number := r.Uint64(), r.String()
	// check: Malformed: what is left over or missing is a revocation that is lost
	if r.Failed || r.More() {
		return malformed("KRL bitmap of serial numbers does not hold an offset and a number")
	}
	// check: Malformed: OpenSSH refuses a list with such a number (RFC 4251: negative where its first bit is set)
	if len(number) > maxBitmap+1 || len(number) > 0 && number[0]&0x80 != 0 {
		return malformed("KRL bitmap of serial numbers is negative or too long")
	}
	number = bytes.TrimLeft(number, "\x00")
	if len(number) == 0 {
		return nil
	}
	last := uint64(len(number)-1)*8 + uint64(bits.Len8(number[0])) - 1
	b := bitmap{offset: offset, bits: number}
	// check: Malformed: OpenSSH refuses a list whose bitmap names the number 0 or passes the largest one
	if last > math.MaxUint64-offset || b.has(0) {
		return malformed("KRL bitmap of serial numbers names a number that there is not")
	}
	s.bitmaps = append(s.bitmaps, b)
	return nil
}
