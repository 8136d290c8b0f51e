package krl

import (
	"bytes"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// PROTOCOL.krl, sections 1 and 2.
const (
	magic         = "SSHKRL\n\x00"
	formatVersion = 1

	sectionCertificates = 1
	sectionExplicitKey  = 2
	sectionSHA1         = 3
	sectionSignature    = 4
	sectionSHA256       = 5
	sectionExtension    = 255
)

// binary reads a KRL.
func (l *List) binary(data []byte) error {
	r := wire.NewReader(data[len(magic):])
	if err := l.header(r); err != nil {
		return err
	}
	for r.More() {
		kind, section := r.Uint8(), r.String()
		// check: Malformed: a section that is cut off is a revocation that is lost
		if r.Failed {
			return malformed("KRL is cut short")
		}
		if err := l.section(kind, wire.NewReader(section)); err != nil {
			return err
		}
	}
	return nil
}

func (l *List) header(r *wire.Reader) error {
	version := r.Uint32()
	serial, date, flags, reserved, comment := r.Uint64(), r.Uint64(), r.Uint64(), r.String(), r.String()
	// check: Malformed: a header that is cut off is no empty list
	if r.Failed {
		return malformed("KRL is cut short")
	}
	// check: Malformed: another format may mean another thing by the same bytes
	if version != formatVersion || flags != 0 || len(reserved) != 0 {
		return malformed("KRL has format %d, flags %d and %d reserved bytes; only format %d without either is known", version, flags, len(reserved), formatVersion)
	}
	// check: Malformed: C programs refuse a NUL there
	if bytes.IndexByte(comment, 0) >= 0 {
		return malformed("KRL has a NUL in its comment")
	}
	l.summary = Summary{Serial: serial, Date: date, Comment: string(comment)}
	return nil
}

func (l *List) section(kind byte, r *wire.Reader) error {
	switch kind {
	case sectionCertificates:
		return l.certificates(r)
	case sectionExplicitKey:
		return eachString(r, func(blob []byte) error {
			l.keys[string(blob)] = true
			return nil
		})
	case sectionSHA1:
		return eachString(r, func(hash []byte) error { return addHash(l.sha1, [20]byte{}, hash) })
	case sectionSHA256:
		return eachString(r, func(hash []byte) error { return addHash(l.sha256, [32]byte{}, hash) })
	case sectionSignature:
		return malformed("KRL carries a signature, which OpenSSH refuses from 9.4 on").Try("sign it from outside, with SSHSIG")
	case sectionExtension:
		// OpenSSH before 9.4 refuses each extension, later ones the critical ones; none is defined.
		return malformed("KRL carries an extension, which not every OpenSSH reads")
	}
	return malformed("KRL has a section of unknown type %d", kind)
}

// addHash adds a hash whose length is that of empty.
func addHash[H [20]byte | [32]byte](set map[H]bool, empty H, hash []byte) error {
	// check: Malformed: half a hash revokes nothing
	if len(hash) != len(empty) {
		return malformed("KRL has a fingerprint of %d bytes where %d are wanted", len(hash), len(empty))
	}
	set[H(hash)] = true
	return nil
}

// eachString reads strings up to the end.
func eachString(r *wire.Reader, add func([]byte) error) error {
	for r.More() {
		s := r.String()
		// check: Malformed: an entry that is cut off is a revocation that is lost
		if r.Failed {
			return malformed("KRL section is cut short")
		}
		if err := add(s); err != nil {
			return decision.From(err)
		}
	}
	return nil
}
