package allowedsigners_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// changeSignature changes a signature in one of the ways that a container can be.
func (d *draft) changeSignature() {
	if d.chance(30) {
		d.changeArmor()
		return
	}
	blob := testkit.ParseBlob(d.t, d.signature)
	switch d.IntN(10) {
	case 0:
		blob.Version = pick[uint32](d, 0, 2)
		d.odd["version"] = true
	case 1:
		blob.Reserved = "x"
		d.odd["reserved"] = true
	case 2:
		blob.Hash = pick(d, "sha1", "sha384", "SHA512", "sha256", "sha512")
	case 3:
		blob.Trailing = "x"
	case 4:
		blob.Signature = append(blob.Signature, 0)
	case 5:
		blob.Key = d.stranger.PublicKey().Marshal()
	case 6:
		blob.Namespace = pick(d, "file", d.namespace+"\x00", "kpssh\x00x", "")
		d.odd["namespace-nul"] = true
	case 7:
		d.changeValue(&blob)
	case 8:
		d.changeKey(&blob)
	default:
		d.odd[anything] = true
		raw := blob.Bytes()
		raw[d.IntN(len(raw))] ^= 1 << d.IntN(8)
		d.signature = testkit.Armor(raw)
		return
	}
	d.signature = blob.Armor()
}

// changeValue writes the same number another way.
func (d *draft) changeValue(blob *testkit.Blob) {
	var s struct {
		Format string
		Blob   []byte
		Rest   []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(blob.Signature, &s); err != nil {
		d.t.Error(err)
		return
	}
	d.odd["value-padding"] = true
	switch {
	case strings.Contains(s.Format, "ed25519"):
		d.odd["ed25519-s"] = true
		addOrder(s.Blob[32:])
	case strings.HasPrefix(s.Format, "rsa"):
		s.Blob = append([]byte{0}, s.Blob...)
	default:
		var rs struct{ R, S []byte }
		if err := ssh.Unmarshal(s.Blob, &rs); err != nil {
			d.t.Error(err)
			return
		}
		rs.R = append([]byte{0}, rs.R...)
		s.Blob = ssh.Marshal(rs)
	}
	blob.Signature = ssh.Marshal(s)
}

// changeKey pads the modulus of an RSA key.
func (d *draft) changeKey(blob *testkit.Blob) {
	var key struct {
		Type string
		E, N []byte
	}
	if d.kind != "rsa3072" || d.certificate != nil {
		blob.Key = append(blob.Key, 0)
		return
	}
	if err := ssh.Unmarshal(blob.Key, &key); err != nil {
		d.t.Error(err)
		return
	}
	d.odd["key-encoding"] = true
	key.N = append([]byte{0}, key.N...)
	blob.Key = ssh.Marshal(key)
}

// addOrder adds the group order of Ed25519 to a number, little end first.
func addOrder(s []byte) {
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i, b := range order {
		sum := int(s[i]) + int(b) + carry
		s[i], carry = byte(sum), sum>>8
	}
}

func (d *draft) changeArmor() {
	s := d.signature
	d.odd["armor"] = true
	switch d.IntN(10) {
	case 0:
		s = strings.TrimSuffix(s, "\n")
	case 1:
		s += pick(d, "x", "\n", s, "trailing text\n")
	case 2:
		s = strings.TrimSuffix(s, "\n") + "x\n"
	case 3:
		s = strings.ReplaceAll(s, "\n", "\r\n")
	case 4:
		s = "  " + strings.ReplaceAll(s, "\n", "\n  ")
	case 5:
		s = strings.Replace(s, "U1NIU0lH", pick(d, "U1NI U0lH", "U1NI\nU0lH", "U1NI\tU0lH", "U1NI-U0lH"), 1)
	case 6:
		s = pick(d, "\n", "\ufeff", " ", "text\n") + s
	case 7:
		s = strings.Replace(s, "=\n", "\n", 1)
	case 8:
		s = strings.Replace(s, "\n-----END", pick(d, "\n\n-----END", "-----END", "=\n-----END", "\nAAAA\n-----END"), 1)
	default:
		d.odd[anything] = true
		s = string(d.scramble([]byte(s)))
	}
	d.signature = s
}

// makeRevoked makes a list of revocations, as often as not of the signer.
func (d *draft) makeRevoked() {
	d.revoked = []byte{}
	switch d.IntN(8) {
	case 0: // an empty file
	case 1, 2:
		d.revoked = []byte(d.makePlain())
	default:
		d.revoked = d.makeKRL()
	}
	if d.chance(8) {
		d.revoked = d.scramble(d.revoked)
	}
}

func (d *draft) makePlain() string {
	var lines []string
	for range 1 + d.IntN(3) {
		switch d.IntN(12) {
		case 0:
			lines = append(lines, pick(d, "", "# gone", " \t"))
		case 1:
			lines = append(lines, d.users[d.kind].Line)
		case 2:
			lines = append(lines, d.cas[d.ca].Line)
		case 3:
			lines = append(lines, pick(d, "x", "restrict "+d.stranger.Line, "SHA256:"+strings.Repeat("A", 43), " x y"))
		case 4:
			d.odd["revoked-line"] = true
			c := testkit.Certify(d.t, d.cas["ed25519"], pick(d, d.users[d.kind], d.stranger).PublicKey(), []string{"x"}, nil)
			lines = append(lines, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c))))
		case 5:
			d.odd["revoked-line"] = true
			lines = append(lines, d.stranger.Line+pick(d, "\r", " a\x01", " \r", "\x7f"))
		default:
			lines = append(lines, pick(d, d.stranger.Line, d.users["ecdsa384"].Line, d.cas["rsa2048"].Line)+pick(d, "", "", " gone"))
		}
	}
	return strings.Join(lines, "\n") + pick(d, "", "\n", "\n")
}

func (d *draft) makeKRL() []byte {
	version, flags, reserved, comment := uint32(1), uint64(0), "", pick(d, "", "gone")
	switch d.IntN(30) {
	case 0:
		version = 2
	case 1:
		flags = 1
		d.odd["krl-header"] = true
	case 2:
		reserved = "x"
		d.odd["krl-header"] = true
	case 3:
		comment = pick(d, "a\x00b", "a\x00")
		d.odd["krl-section"] = true
	}
	b := binary.BigEndian.AppendUint32([]byte("SSHKRL\n\x00"), version)
	b = append(b, numbers(1, uint64(d.now.Unix()), flags)...)
	b = append(b, wires(reserved, comment)...)
	for range d.IntN(3) {
		b = append(b, d.makeSection()...)
	}
	return b
}

func numbers(all ...uint64) []byte {
	var b []byte
	for _, n := range all {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func wires[T string | []byte](all ...T) []byte {
	var b []byte
	for _, s := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

func section(kind byte, content []byte) []byte { return append([]byte{kind}, wires(content)...) }

func (d *draft) makeSection() []byte {
	key := pick(d, d.users[d.kind], d.cas[d.ca], d.stranger, d.stranger, d.stranger, d.stranger, d.stranger).PublicKey().Marshal()
	long, short := sha256.Sum256(key), sha1.Sum(key)
	switch d.IntN(10) {
	case 0:
		return section(2, wires(key))
	case 1:
		return section(3, wires(short[:]))
	case 2:
		return section(5, wires(long[:], long[:]))
	case 3:
		d.odd["krl-section"] = true
		return pick(d, section(4, wires("x")), section(255, append(wires("x@example.org"), 0, 0, 0, 0, 0)), section(6, nil), section(5, wires("short")), section(2, []byte("x")))
	}
	authority := []byte(nil)
	if d.chance(70) {
		authority = pick(d, d.cas[d.ca], d.cas[d.ca], d.stranger).PublicKey().Marshal()
	}
	content := wires(authority, nil)
	for range d.IntN(3) {
		content = append(content, d.makePart()...)
	}
	return section(1, content)
}

func (d *draft) makePart() []byte {
	serial := uint64(7) // that of testkit's certificates
	if d.chance(60) {
		serial = pick[uint64](d, 1, 6, 8, 1<<40, 1<<64-1, 0)
	}
	switch d.IntN(6) {
	case 0:
		return section(0x20, numbers(serial, 100))
	case 1:
		return section(0x21, numbers(serial, serial+uint64(d.IntN(3))))
	case 2:
		return section(0x22, append(numbers(serial-min(serial, 3)), wires(pick(d, "\x08", "\x01\x08", "\x00", "", "\x00\x80", "\x7f\xff", "\x80"))...))
	case 3, 4:
		return section(0x23, wires(pick(d, "test", "other", "", "te*", "a\x00b")))
	default:
		return pick(d, section(0x39, append(wires("x@example.org"), 0, 0, 0, 0, 0)), section(0x24, nil), section(0x21, numbers(9, 3)), section(0x20, []byte("x")), section(0x20, nil))
	}
}
