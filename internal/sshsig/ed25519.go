package sshsig

import (
	"bytes"
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/wire"
)

// checkPoint refuses Ed25519 keys by which anybody can sign, and second
// encodings of a key. The library looks at neither; OpenSSH does from 10.4 on.
func checkPoint(key ssh.PublicKey) error {
	r := wire.NewReader(key.Marshal())
	r.String() // type
	point := bytes.Clone(r.String())
	// check: KeyTypeRefused: what is not a point is no key
	if len(point) != 32 {
		return decision.Errorf(decision.KeyTypeRefused, "Ed25519 key has %d bytes", len(point))
	}
	point[31] &= 0x7f // the sign of x; the rest is y, little end first
	// check: KeyTypeRefused: a signature of zeros is good for a key of small order, whatever the message
	if slices.Contains(smallOrder(), string(point)) {
		return decision.Errorf(decision.KeyTypeRefused, "Ed25519 key is of small order: anybody could sign")
	}
	// check: KeyTypeRefused: a second encoding of one key would count as another key
	if point[0] >= 0xed && point[31] == 0x7f && bytes.Count(point[1:31], []byte{0xff}) == 30 {
		return decision.Errorf(decision.KeyTypeRefused, "Ed25519 key is not in its canonical encoding")
	}
	return nil
}

// smallOrder gives y of the points whose order divides 8 (RFC 8032 section 5.1:
// the cofactor), but for what is not canonical.
func smallOrder() []string {
	const order8 = "\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05"
	const minusOrder8 = "\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a"
	zeros := string(make([]byte, 31))
	return []string{
		"\x00" + zeros, // order 4
		"\x01" + zeros, // order 1
		"\xec" + string(bytes.Repeat([]byte{0xff}, 30)) + "\x7f", // order 2: y is -1
		order8, minusOrder8,
	}
}
