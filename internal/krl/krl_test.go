package krl_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestReadsWhatKeygenWrites has ssh-keygen write lists of each kind, and wants its own answers to them.
func TestReadsWhatKeygenWrites(t *testing.T) {
	ca, otherCA := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	user, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa384")
	certificate := func(ca testkit.Signer, key testkit.Signer, serial uint64, id string) ssh.PublicKey {
		return testkit.Certify(t, ca, key.PublicKey(), []string{"kpssh"}, func(c *ssh.Certificate) { c.Serial, c.KeyId = serial, id })
	}
	keys := []ssh.PublicKey{
		user.PublicKey(), other.PublicKey(), ca.PublicKey(),
		certificate(ca, user, 7, "seven"), certificate(ca, other, 8, "eight"), certificate(ca, user, 0, "none"), certificate(otherCA, user, 7, "seven"),
	}
	sparse := ""
	for i := range 60 {
		sparse += fmt.Sprintf("serial: %d\n", 7+i*i)
	}
	tests := map[string]struct {
		ca   string
		spec string
		want int // how many of the keys are revoked
	}{
		"nothing":                        {"", "", 0},
		"an explicit key":                {"", "key: " + user.Line + "\n", 4},
		"the key of an authority":        {"", "key: " + ca.Line + "\n", 4},
		"a SHA-1 fingerprint":            {"", "sha1: " + user.Line + "\n", 4},
		"a SHA-256 fingerprint":          {"", "sha256: " + user.Line + "\n", 4},
		"a hash":                         {"", "hash: " + user.Fingerprint + "\n", 4},
		"a serial number":                {ca.Line, "serial: 7\n", 1},
		"a serial number of another CA":  {otherCA.Line, "serial: 8\n", 0},
		"two serial numbers":             {ca.Line, "serial: 7\nserial: 100\n", 1},
		"a range of serial numbers":      {ca.Line, "serial: 1-8\n", 2},
		"many serial numbers":            {ca.Line, sparse, 2},
		"all serial numbers":             {ca.Line, "serial: 1-18446744073709551615\n", 2},
		"a key id":                       {ca.Line, "id: seven\n", 1},
		"a key id of any CA":             {"none", "id: seven\n", 2},
		"a serial number of any CA":      {"none", "serial: 7\n", 2},
		"the id of what has no number":   {ca.Line, "id: none\n", 1},
		"all kinds together":             {ca.Line, "serial: 8\nid: none\nkey: " + other.Line + "\nhash: " + otherCA.Fingerprint + "\n", 4},
		"the largest serial number":      {ca.Line, "serial: 18446744073709551615\n", 0},
		"an authority by its hash":       {"", "hash: " + otherCA.Fingerprint + "\n", 1},
		"a fingerprint of somebody else": {"", "hash: " + testkit.NewSigner(t, "ed25519").Fingerprint + "\n", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list := keygenWrites(t, tt.ca, tt.spec)
			compare(t, list, keys...)
			l, got := parse(t, list), 0
			for _, key := range keys {
				if l.Revoked(key) {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d of %d are revoked, want %d", got, len(keys), tt.want)
			}
			if s := l.Summary(); s.Serial != 9 || s.Date == 0 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

func TestPlainList(t *testing.T) {
	user, other := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ecdsa256")
	weak := testkit.NewSigner(t, "rsa2048")
	c := testkit.Certify(t, other, user.PublicKey(), []string{"kpssh"}, nil)
	tests := map[string]struct {
		text string
		want bool
	}{
		"empty":                      {"", false},
		"comments and blank lines":   {"# nobody yet\n\n  \n\t# really\n", false},
		"the key":                    {user.Line + "\n", true},
		"the key without a last LF":  {user.Line, true},
		"the key, spaced out":        {" \t" + strings.Replace(user.Line, " ", " \t ", 1) + "  who it was\n", true},
		"another key":                {other.Line + "\n", false},
		"a weak key before it":       {weak.Line + "\n" + user.Line + "\n", true},
		"the key as a comment":       {"#" + user.Line + "\n", false},
		"a key of another encoding":  {testkit.NewSigner(t, "sk-ed25519").Line + "\n", false},
		"the key, after a blank one": {"\n" + user.Line + "\n", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := parse(t, []byte(tt.text))
			if got := l.Revoked(user.PublicKey()); got != tt.want {
				t.Errorf("revoked: %v, want %v", got, tt.want)
			}
			if got := l.Revoked(c); got != (tt.want || strings.HasPrefix(tt.text, other.Line)) {
				t.Errorf("the certificate is revoked: %v", got)
			}
		})
	}
}

func TestPlainListRefuses(t *testing.T) {
	line := testkit.NewSigner(t, "ed25519").Line
	c := testkit.Certify(t, testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519").PublicKey(), []string{"kpssh"}, nil)
	keyType, encoded, _ := strings.Cut(line, " ")
	for name, text := range map[string]string{
		"words":                   "no key at all\n",
		"one word":                "nokey\n",
		"a fingerprint":           "SHA256:" + strings.Repeat("A", 43) + "\n",
		"a byte order mark":       "\ufeff" + line + "\n",
		"CRLF":                    line + "\r\n",
		"a NUL":                   line + " x\x00\n",
		"an option":               "restrict " + line + "\n",
		"a type that is not its":  "ssh-rsa " + encoded + "\n",
		"a key cut short":         line[:len(line)-8] + "\n",
		"a type alone":            keyType + "\n",
		"a certificate":           string(ssh.MarshalAuthorizedKey(c)),
		"a key of an application": skWithNUL(t) + "\n",
		"an RSA key of 512 bits":  rsaOf512(t) + "\n",
		"a bad line after a good": line + "\nx\n",
		"the magic alone":         "SSHKRL\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := krl.Parse([]byte(text))
			wantReason(t, err, decision.Malformed)
			if name == "a bad line after a good" && decision.From(err).Where != "line 2" {
				t.Errorf("the error is at %q", decision.From(err).Where)
			}
		})
	}
}

func skWithNUL(t *testing.T) string {
	t.Helper()
	key := testkit.NewSigner(t, "sk-ed25519").PublicKey()
	return line(t, bytes.Replace(key.Marshal(), wire("ssh:"), wire("s\x00h:"), 1))
}

func rsaOf512(t *testing.T) string {
	t.Helper()
	modulus := append([]byte{0, 0x80}, make([]byte, 62)...)
	return line(t, join(wire("ssh-rsa"), wire("\x01\x00\x01"), wire(string(append(modulus, 1)))))
}

func line(t *testing.T, blob []byte) string {
	t.Helper()
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func TestWhatIsNotThereIsRevoked(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519").PublicKey()
	var none *krl.List
	if !none.Revoked(key) || !new(krl.List).Revoked(key) {
		t.Error("a list that was never read revokes nothing")
	}
	if l := parse(t, nil); !l.Revoked(nil) || !l.Revoked(&ssh.Certificate{}) || l.Revoked(key) {
		t.Error("an empty list does not tell a key from none")
	}
}

func TestBinaryRefuses(t *testing.T) {
	ca := testkit.NewSigner(t, "ed25519").PublicKey().Marshal()
	certs := func(parts ...[]byte) []byte {
		return join(header(), section(1, wire(string(ca)), wire(""), join(parts...)))
	}
	withByte := func(at int, b byte) []byte {
		h := header()
		h[at] = b
		return h
	}
	tests := map[string][]byte{
		"a header cut short":                header()[:30],
		"the magic alone":                   header()[:8],
		"format 0":                          withByte(11, 0),
		"format 2":                          withByte(11, 2),
		"flags":                             withByte(35, 1),
		"something reserved":                join(header()[:36], wire("x"), wire("")),
		"a NUL in the comment":              join(header()[:40], wire("a\x00b")),
		"a byte after the header":           append(header(), 2),
		"a section cut short":               append(header(), section(2, wire("key"))[:7]...),
		"an unknown section":                append(header(), section(6)...),
		"section 0":                         append(header(), section(0)...),
		"a signature":                       append(header(), section(4, wire("x"))...),
		"an extension that is not critical": append(header(), section(255, wire("x@example.org"), []byte{0}, wire(""))...),
		"a critical extension":              append(header(), section(255, wire("x@example.org"), []byte{1}, wire(""))...),
		"an explicit key cut short":         append(header(), section(2, wire("key")[:5])...),
		"a SHA-1 of 32 bytes":               append(header(), section(3, wire(strings.Repeat("x", 32)))...),
		"a SHA-256 of 20 bytes":             append(header(), section(5, wire(strings.Repeat("x", 20)))...),
		"a SHA-256 without its length":      append(header(), section(5, []byte(strings.Repeat("x", 32)))...),
		"a certificate section of nothing":  append(header(), section(1)...),
		"something reserved in it":          append(header(), section(1, wire(""), wire("x"))...),
		"a CA that is no key":               append(header(), section(1, wire("x"), wire(""))...),
		"a CA of a type not known":          append(header(), section(1, wire(string(wire("ssh-dss"))), wire(""))...),
		"a part cut short":                  certs(section(0x20, number(1))[:9]),
		"an unknown part":                   certs(section(0x24)),
		"an extension of it":                certs(section(0x39, wire("x@example.org"), []byte{0}, wire(""))),
		"serial 0":                          certs(section(0x20, number(0))),
		"half a serial":                     certs(section(0x20, number(1), number(2)[:4])),
		"a range from 0":                    certs(section(0x21, number(0), number(2))),
		"a range that runs back":            certs(section(0x21, number(3), number(2))),
		"half a range":                      certs(section(0x21, number(3))),
		"a range and more":                  certs(section(0x21, number(1), number(2), number(3))),
		"a bitmap without a number":         certs(section(0x22, number(1))),
		"a bitmap and more":                 certs(section(0x22, number(1), wire("\x01"), []byte{0})),
		"a negative bitmap":                 certs(section(0x22, number(1), wire("\x80"))),
		"a bitmap too long":                 certs(section(0x22, number(1), wire(strings.Repeat("\x01", 2050)))),
		"a bitmap of number 0":              certs(section(0x22, number(0), wire("\x01"))),
		"a bitmap that wraps":               certs(section(0x22, number(math.MaxUint64), wire("\x02"))),
		"a key id with a NUL":               certs(section(0x23, wire("a\x00b"))),
		"a key id cut short":                certs(section(0x23, wire("ab")[:5])),
	}
	for name, list := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := krl.Parse(list)
			wantReason(t, err, decision.Malformed)
		})
	}
	_, err := krl.Parse(make([]byte, krl.MaxSize+1))
	wantReason(t, err, decision.TooLarge)
}

// TestBitmaps puts the corners of the bitmap to ssh-keygen.
func TestBitmaps(t *testing.T) {
	ca, user := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	var keys []ssh.PublicKey
	for _, serial := range []uint64{0, 1, 7, 8, 9, 10, 15, 16, 17, math.MaxUint64 - 1, math.MaxUint64} {
		keys = append(keys, testkit.Certify(t, ca, user.PublicKey(), []string{"kpssh"}, func(c *ssh.Certificate) { c.Serial = serial }))
	}
	for name, part := range map[string][]byte{
		"nothing":                 section(0x22, number(8), wire("")),
		"zero":                    section(0x22, number(8), wire("\x00")),
		"the offset alone":        section(0x22, number(8), wire("\x01")),
		"the eighth from it":      section(0x22, number(8), wire("\x00\x80")),
		"the ninth from it":       section(0x22, number(8), wire("\x01\x00")),
		"zeros before it":         section(0x22, number(8), wire("\x00\x00\x00\x03")),
		"offset 0":                section(0x22, number(0), wire("\x02")),
		"up to the largest":       section(0x22, number(math.MaxUint64-1), wire("\x03")),
		"as long as may be":       section(0x22, number(1), wire(strings.Repeat("\x7f", 2048))),
		"as long with its zero":   section(0x22, number(1), append(wire("\x00"+strings.Repeat("\xff", 2048)), nil...)),
		"the largest number":      section(0x20, number(math.MaxUint64)),
		"a range of one":          section(0x21, number(9), number(9)),
		"two parts":               join(section(0x22, number(8), wire("\x01")), section(0x20, number(10), number(1))),
		"no part":                 nil,
		"an id that is empty":     section(0x23, wire("")),
		"the id of all of them":   section(0x23, wire("test")),
		"an id that is a pattern": section(0x23, wire("t*")),
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, append(header(), section(1, wire(string(ca.PublicKey().Marshal())), wire(""), part)...), keys...)
		})
	}
}
